public import MartletClient
public import SystemPackage

/// A download that is complete.
public struct DownloadResult: Hashable, Sendable {
    /// The file.
    public var path: FilePath
    /// Its length in bytes.
    public var byteCount: UInt64
    /// How much of it came in earlier runs.
    public var resumedByteCount: UInt64
    /// Bytes of bodies that this run received, those that had to be thrown away included.
    public var receivedByteCount: UInt64
    /// The checksums that it was compared with.
    public var verified: [Checksum]
    /// Where it came from, behind redirects, without user info.
    public var url: HTTPURL

    /// A result.
    public init(
        path: FilePath, byteCount: UInt64, resumedByteCount: UInt64 = 0, receivedByteCount: UInt64,
        verified: [Checksum] = [], url: HTTPURL
    ) {
        self.path = path
        self.byteCount = byteCount
        self.resumedByteCount = resumedByteCount
        self.receivedByteCount = receivedByteCount
        self.verified = verified
        self.url = url
    }
}
