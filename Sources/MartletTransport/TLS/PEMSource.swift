/// Where PEM text (RFC 7468) comes from: certificates, a private key, or both in one.
public struct PEMSource: Hashable, Sendable, CustomStringConvertible {
    enum Place: Hashable, Sendable {
        case file(String)
        case bytes([UInt8])
    }

    let place: Place

    /// A file, read when a connection first needs it.
    /// - Parameter path: The file's path, as the system takes it.
    public static func file(_ path: String) -> PEMSource {
        PEMSource(place: .file(path))
    }

    /// PEM text held in memory.
    public static func text(_ text: String) -> PEMSource {
        PEMSource(place: .bytes(Array(text.utf8)))
    }

    /// PEM text held in memory, as bytes.
    public static func bytes(_ bytes: [UInt8]) -> PEMSource {
        PEMSource(place: .bytes(bytes))
    }

    /// The file's path, or that the text is in memory. The text itself is never shown: it may be a private
    /// key.
    public var description: String {
        switch place {
        case .file(let path): path
        case .bytes(let bytes): "PEM text of \(bytes.count) bytes"
        }
    }
}
