import MartletXML

/// The parser's events of a document up to the end or an error.
struct Reading: Equatable {
    var events: [XMLEvent] = []
    var error: XMLError?
    var encoding: XMLEncoding?

    /// Parses bytes in pieces of a fixed size.
    init(
        _ bytes: [UInt8], size: Int = .max, charset: String? = nil, limits: XMLLimits = .default,
        doctype: XMLDoctypePolicy = .ignore
    ) {
        let cuts = size < bytes.count ? Array(stride(from: size, to: bytes.count, by: size)) : []
        self.init(bytes, cuts: cuts, charset: charset, limits: limits, doctype: doctype)
    }

    /// Parses bytes split at the given offsets.
    init(
        _ bytes: [UInt8], cuts: [Int], charset: String? = nil, limits: XMLLimits = .default,
        doctype: XMLDoctypePolicy = .ignore
    ) {
        var parser = XMLEventParser(charset: charset, limits: limits, doctype: doctype)
        do throws(XMLError) {
            var fed = 0
            for cut in cuts + [bytes.count] {
                parser.feed(bytes[fed..<cut])
                fed = cut
                while let event = try parser.next() { events.append(event) }
            }
            parser.finish()
            while let event = try parser.next() { events.append(event) }
        } catch {
            self.error = error
        }
        encoding = parser.encoding
    }

    /// Parses a text in one piece.
    init(_ text: String, limits: XMLLimits = .default, doctype: XMLDoctypePolicy = .ignore) {
        self.init(Array(text.utf8), limits: limits, doctype: doctype)
    }
}

extension XMLEvent {
    static func start(_ local: String, _ attributes: [String: String] = [:]) -> XMLEvent {
        .start(
            XMLElementStart(
                XMLName(local),
                attributes: attributes.sorted { $0.key < $1.key }.map {
                    XMLAttribute(XMLName($0.key), $0.value)
                }
            ))
    }

    static func end(_ local: String) -> XMLEvent { .end(XMLName(local)) }
}
