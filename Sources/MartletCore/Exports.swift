@_exported public import HTTPTypes
@_exported public import MartletConnections
@_exported public import MartletStorage
@_exported public import MartletTransport
@_exported public import MartletWire
@_exported public import SystemPackage
