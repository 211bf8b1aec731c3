from .calls import ARENA_BYTES as ARENA_BYTES
from .calls import FIRST_ADDRESS as FIRST_ADDRESS
from .calls import RED_ZONE as RED_ZONE
from .recording import record_plans as record_plans
from .recording import recorder_program as recorder_program
from .refusals import refusal_sentence as refusal_sentence
