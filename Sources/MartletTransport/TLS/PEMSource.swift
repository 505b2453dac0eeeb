/// Where certificates, keys or revocation lists come from: PEM text (RFC 7468), with any number of them in one, or one in
/// DER.
public struct PEMSource: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible,
    CustomReflectable
{
    enum Place: Hashable, Sendable {
        case file(String)
        case bytes([UInt8])
    }

    let place: Place

    /// A file, read when a connection first needs it.
    /// - Parameter path: The file's path, as the system takes it.
    public static func file(_ path: String) -> PEMSource { PEMSource(place: .file(path)) }

    /// A file that is read at once, on the calling thread, and must hold certificates.
    /// - Throws: ``TLSError`` of kind `.rootCertificates` that names the file, and the certificate that is damaged.
    public static func pem(file path: String) throws(TLSError) -> PEMSource {
        let source = PEMSource(place: .file(path))
        _ = try PEMReader.certificates(of: source)
        do throws(SystemError) {
            return PEMSource(place: .bytes(try PEMReader.bytes(of: source)))
        } catch {
            throw TLSError(.rootCertificates(reason: error.description, source: source.description))
        }
    }

    /// PEM text held in memory.
    public static func text(_ text: String) -> PEMSource { PEMSource(place: .bytes(Array(text.utf8))) }

    /// PEM text, or DER, held in memory.
    public static func bytes(_ bytes: [UInt8]) -> PEMSource { PEMSource(place: .bytes(bytes)) }

    /// The file's path, or that the text is in memory. The text itself is never shown: it may be a private
    /// key.
    public var description: String {
        switch place {
        case .file(let path): path
        case .bytes(let bytes): "PEM text of \(bytes.count) bytes"
        }
    }

    /// As ``description``.
    public var debugDescription: String { description }

    /// Shows the description alone.
    public var customMirror: Mirror { Mirror(self, children: ["source": description]) }
}
