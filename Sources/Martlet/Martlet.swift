@_exported public import MartletClient
