from .host import ceilings as ceilings
from .host import run_host as run_host
from .rendering import html as html
from .rendering import terminal as terminal
