/// An attribute as it is written, before prefixes are resolved.
struct RawAttribute {
    /// The name with its prefix, as UTF-8.
    let name: [UInt8]
    /// The value, normalised.
    let value: String
    /// Where the name begins.
    let position: XMLPosition
}
