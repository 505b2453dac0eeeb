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

    /// Returns the links of field values, in order. Malformed links are skipped, and so are links with an `anchor`,
    /// whose context is another resource (RFC 8288 §3.2).
    package static func links(in values: [String], base: HTTPURL) -> [HTTPLink] {
        values.flatMap(elements).compactMap { HTTPLink($0, base: base) }
    }

    private init?(_ element: [UInt8], base: HTTPURL) {
        guard let start = element.firstIndex(where: { !ByteClass.isBlank($0) }), element[start] == UInt8(ascii: "<"),
            let end = element[start...].firstIndex(of: UInt8(ascii: ">")),
            let url = try? base.resolving(String(decoding: element[(start + 1)..<end], as: UTF8.self))
        else { return nil }
        var parser = FieldValueParser(String(decoding: element[(end + 1)...], as: UTF8.self))
        let list = parser.parameters(isLenient: true) ?? []
        parameters = Dictionary(list.map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first })
        guard parameters["anchor"] == nil else { return nil }
        relations = (parameters["rel"] ?? "").lowercased().split(separator: " ").map(String.init)
        self.url = url
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
