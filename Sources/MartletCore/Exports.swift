// The modules below the core. The core's files and its users need no further imports for them.
@_exported public import HTTPTypes
@_exported public import Logging
@_exported public import MartletPool
@_exported public import MartletContent
@_exported public import MartletCredentials
@_exported public import MartletPolicies
@_exported public import MartletStorage
@_exported public import MartletTransport
@_exported public import MartletURL
@_exported public import MartletWire
@_exported public import SystemPackage
