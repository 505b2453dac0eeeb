/// What a HAR log shows.
public struct HAROptions: Hashable, Sendable {
    /// What is kept out of it; credentials and cookies by default.
    public var mask = SecretMask.standard

    /// The most bytes of a body, sent or received, that are shown; 1 MiB by default. It keeps a log of large transfers from
    /// growing as large. Of a longer text its beginning is shown, of other bodies the size alone.
    public var bodyLimit = ByteCount.mebibytes(1)

    /// The defaults.
    public init() {}
}
