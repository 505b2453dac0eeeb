import MartletWire

/// Whether a request takes a stored response in the codings that it is stored in (RFC 9110 §12.5.3).
///
/// What is stored in a coding answers nobody who did not ask for it, whatever `Vary` says: servers that leave it out are
/// common, and nobody would undo the coding. Without an `Accept-Encoding` field none is taken, though the RFC would allow
/// any.
enum CodingRule {
    /// Those that a request asks for or does not (IANA's registry of codings); whoever sends another one has reasons of his own.
    private static let negotiated: Set<String> = ["gzip", "deflate", "compress", "br", "zstd"]

    /// The codings that a response is in, in lower case and by their own names: of those that are negotiated.
    static func codings(of fields: FieldBlock) -> [String] {
        fields.rawValues(of: "Content-Encoding").flatMap { value in
            ElementList(value).map { name($0) }.filter { negotiated.contains($0) }
        }
    }

    /// Whether a request takes a response; what is in no coding is taken by all.
    static func accepts(_ variant: StoredVariant, _ request: CacheRequest) -> Bool {
        let codings = variant.facts.codings
        if codings.isEmpty { return true }
        let wanted = request.fields.rawValues(of: "Accept-Encoding")
        return codings.allSatisfy { isAccepted($0, by: wanted) }
    }

    /// Whether lines of `Accept-Encoding` name a coding, or else `*`, with a weight above 0.
    private static func isAccepted(_ coding: String, by lines: [ArraySlice<UInt8>]) -> Bool {
        var isNamed: Bool?
        var isAnyAccepted = false
        for line in lines {
            for member in ElementList(line) {
                let end = member.firstIndex(of: UInt8(ascii: ";")) ?? member.endIndex
                let found = name(ByteClass.trimmed(member[..<end]))
                let isWanted = !isZero(member[end...])
                if found == coding { isNamed = (isNamed ?? false) || isWanted }
                if found == "*" { isAnyAccepted = isAnyAccepted || isWanted }
            }
        }
        return isNamed ?? isAnyAccepted
    }

    /// Whether parameters are a weight of 0; one that is none counts as 1.
    private static func isZero(_ parameters: ArraySlice<UInt8>) -> Bool {
        let bytes = parameters.filter { !ByteClass.isBlank($0) }.map(ByteClass.lowercased)
        guard bytes.starts(with: ";q=0".utf8) else { return false }
        let rest = bytes.dropFirst(4)
        return rest.isEmpty
            || rest.first == UInt8(ascii: ".") && rest.dropFirst().allSatisfy { $0 == UInt8(ascii: "0") }
    }

    /// A coding's name in lower case, without the `x-` of old (RFC 9110 §8.4.1).
    private static func name(_ bytes: ArraySlice<UInt8>) -> String {
        switch String(decoding: bytes.map(ByteClass.lowercased), as: UTF8.self) {
        case "x-gzip": "gzip"
        case "x-compress": "compress"
        case let name: name
        }
    }
}
