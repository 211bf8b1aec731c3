# docker build -t IMAGE . ; nothing is downloaded when a submission is graded.
FROM python:3.12-slim-bookworm
RUN apt-get update -qq \
 && apt-get install -y -qq --no-install-recommends g++ util-linux \
 && rm -rf /var/lib/apt/lists/*
COPY <<wheel>> /opt/sgemm-grader/
RUN pip install --no-cache-dir /opt/sgemm-grader/<<wheel>>
COPY judge lab.yaml<% if hidden %> hidden.yaml<% endif %> /opt/sgemm-grader/
RUN SGEMM_GRADER_CACHE=/opt/sgemm-grader/cache grade doctor \
 && chmod -R a+rX /opt/sgemm-grader
USER 1000
WORKDIR /mnt/work
