from .archive import UnreadableFile as UnreadableFile
from .load import load as load
from .save import save as save
