@_exported public import MartletClient
@_exported public import MartletDownloads
@_exported public import MartletOffline
