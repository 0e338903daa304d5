"""What counts as a word where words are counted, left out or lined up."""

import re

#: Letters and digits, apostrophes inside.
WORD = re.compile(r"\w+(?:['’]\w+)*")
