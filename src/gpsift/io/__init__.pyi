from .archive import UnreadableFile as UnreadableFile
from .files import load as load
from .files import save as save
