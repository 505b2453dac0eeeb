import MartletWire

/// Which fields of a response are kept (RFC 9111 §3.1).
enum StoredFields {
    /// The fields that concern a connection or a proxy, and never a stored response.
    private static let hopByHop: Set<String> = [
        "connection", "proxy-connection", "keep-alive", "te", "transfer-encoding", "upgrade",
        "proxy-authenticate",
        "proxy-authentication-info", "proxy-authorization", "trailer",
    ]
    /// The fields that the use of a response depends on: a `Connection` field that names one, and so would have it
    /// forgotten, makes the response doubtful (RFC 9110 §7.6.1).
    private static let needed: Set<String> = [
        "cache-control", "vary", "date", "age", "expires", "etag", "last-modified", "content-type",
        "content-encoding",
        "content-range", "content-location", "location", "pragma",
    ]

    /// The names, in lower case, that `Connection` lists.
    static func connectionNames(_ fields: FieldBlock) -> Set<String> {
        var names: Set<String> = []
        for value in fields.rawValues(of: "Connection") {
            for member in ElementList(value) where member.count <= 256 {
                names.insert(String(decoding: member.map(ByteClass.lowercased), as: UTF8.self))
            }
        }
        return names
    }

    /// Whether `Connection` names a field that the use of a response depends on.
    static func isDoubtful(_ fields: FieldBlock) -> Bool { !connectionNames(fields).isDisjoint(with: needed) }

    /// The fields of a response that are kept, and a `Date` where it has none that can be read (RFC 9110 §6.6.1).
    static func kept(_ fields: FieldBlock, received: WallTime) -> FieldBlock {
        let dropped = hopByHop.union(connectionNames(fields))
        var kept = FieldBlock()
        // What is stored is not what a length beside chunks says (RFC 9112 §6.3).
        let isChunked = fields.contains("Transfer-Encoding")
        let hasDate = MessageDates(fields, received: received).hasDate
        for index in fields.indices {
            let name = lowercased(fields.name(at: index))
            if dropped.contains(name) || (!hasDate && name == "date") { continue }
            if isChunked, name == "content-length" { continue }
            kept.append(name: fields.name(at: index), value: fields.value(at: index))
        }
        if !hasDate {
            kept.append(name: "Date", value: HTTPDate(secondsSinceEpoch: received.seconds).text)
        }
        return kept
    }

    /// The fields of a block whose names, in lower case, pass a test.
    static func filtered(_ fields: FieldBlock, _ passes: (String) -> Bool) -> FieldBlock {
        var kept = FieldBlock()
        for index in fields.indices where passes(lowercased(fields.name(at: index))) {
            kept.append(name: fields.name(at: index), value: fields.value(at: index))
        }
        return kept
    }

    /// A name in lower case.
    static func lowercased(_ name: ArraySlice<UInt8>) -> String {
        String(decoding: name.map(ByteClass.lowercased), as: UTF8.self)
    }
}
