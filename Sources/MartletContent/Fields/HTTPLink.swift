import MartletWire
public import MartletURL

/// A link in a `Link` field (RFC 8288), such as the one to the next page of a list.
public struct HTTPLink: Hashable, Sendable {
    /// The target, resolved against the URL of the response.
    public let url: HTTPURL
    /// The relation types in lower case, such as `next` and `last`; empty without a `rel` parameter.
    public let relations: [String]
    /// The parameters by name in lower case, such as `title`. Of a repeated parameter, the first is used.
    public let parameters: [String: String]

    /// The maximum size of all copies of the base URL: a target of a few bytes can become as long as its base.
    static let baseByteLimit = 1 << 20

    /// Returns the links of field values, in order. Malformed links are skipped, and so are links with an `anchor`,
    /// whose context is another resource (RFC 8288 §3.2).
    ///
    /// The number of resolved links times the length of the base URL is at most 1 MiB; further links are ignored.
    /// - Parameter relation: The relation, in any case, of the only link to return; `nil` (the default) for all links.
    package static func links(in values: [String], base: HTTPURL, relation: String? = nil) -> [HTTPLink] {
        let wanted = relation?.lowercased()
        var links: [HTTPLink] = []
        var remainingCount = baseByteLimit / base.absoluteForm.utf8.count
        for element in values.lazy.flatMap(elements) {
            guard let (target, parameters) = parts(of: element), parameters["anchor"] == nil else { continue }
            let relations = (parameters["rel"] ?? "").lowercased().split(separator: " ").map(String.init)
            if let wanted, !relations.contains(wanted) { continue }
            guard remainingCount > 0 else { break }
            remainingCount -= 1
            guard let url = try? base.resolving(target) else { continue }
            links.append(HTTPLink(url: url, relations: relations, parameters: parameters))
            if wanted != nil { break }
        }
        return links
    }

    /// Returns the target and the parameters of a link; `nil` without a target.
    private static func parts(of element: [UInt8]) -> (target: String, parameters: [String: String])? {
        guard let start = element.firstIndex(where: { !ByteClass.isBlank($0) }), element[start] == UInt8(ascii: "<"),
            let end = element[start...].firstIndex(of: UInt8(ascii: ">"))
        else { return nil }
        var parser = FieldValueParser(String(decoding: element[(end + 1)...], as: UTF8.self))
        let list = parser.parameters(isLenient: true) ?? []
        let parameters = Dictionary(list.map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first })
        return (String(decoding: element[(start + 1)..<end], as: UTF8.self), parameters)
    }

    /// Splits a field value at the commas outside of targets and quoted strings.
    private static func elements(of value: String) -> [[UInt8]] {
        var elements: [[UInt8]] = [[]]
        var closer: UInt8?
        var isEscaped = false
        for byte in value.utf8 {
            switch byte {
            case _ where isEscaped: isEscaped = false
            case UInt8(ascii: "\\") where closer == UInt8(ascii: "\""): isEscaped = true
            case closer: closer = nil
            case UInt8(ascii: "<") where closer == nil: closer = UInt8(ascii: ">")
            case UInt8(ascii: "\"") where closer == nil: closer = UInt8(ascii: "\"")
            case UInt8(ascii: ",") where closer == nil:
                elements.append([])
                continue
            default: break
            }
            elements[elements.count - 1].append(byte)
        }
        return elements
    }
}
