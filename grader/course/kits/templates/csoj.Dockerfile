# docker build -t IMAGE . ; nothing is downloaded when a submission is graded.
ARG BASE=debian:12.11-slim
FROM ${BASE}
ARG PIP_NO_INDEX
ARG PIP_FIND_LINKS
RUN dpkg --status g++ python3-venv util-linux >/dev/null 2>&1 \
 || { apt-get update -qq \
   && apt-get install -y -qq --no-install-recommends g++ python3 python3-venv util-linux \
   && rm -rf /var/lib/apt/lists/*; }
COPY <<wheel>> /opt/sgemm-grader/
RUN python3 -m venv /opt/sgemm-grader/venv \
 && /opt/sgemm-grader/venv/bin/pip install --quiet --no-cache-dir /opt/sgemm-grader/<<wheel>> \
 && ln -s /opt/sgemm-grader/venv/bin/grade /usr/local/bin/grade
RUN SGEMM_GRADER_CACHE=/opt/sgemm-grader/cache grade doctor
COPY judge <<labs>> /opt/sgemm-grader/
<% for folder in folders %>
COPY <<folder>> /opt/sgemm-grader/<<folder>>
<% endfor %>
RUN chmod -R a+rX /opt/sgemm-grader
USER 1000
WORKDIR /mnt/work
