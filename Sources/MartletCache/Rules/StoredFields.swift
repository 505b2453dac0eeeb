import MartletWire
import Synchronization

/// Which fields of a response are kept (RFC 9111 §3.1).
enum StoredFields {
    /// The fields that concern a connection or a proxy, and never a stored response.
    private static let hopByHop: Set<String> = [
        "connection", "proxy-connection", "keep-alive", "te", "transfer-encoding", "upgrade",
        "proxy-authenticate", "proxy-authentication-info", "proxy-authorization", "trailer",
    ]
    /// The fields that the use of a response depends on: a `Connection` field that names one, and so would have it
    /// forgotten, makes the response doubtful (RFC 9110 §7.6.1).
    private static let needed: Set<String> = [
        "cache-control", "vary", "date", "age", "expires", "etag", "last-modified", "content-type",
        "content-encoding", "content-range", "content-location", "location", "pragma",
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
        if !hasDate { kept.append(name: "Date", value: HTTPDate(secondsSinceEpoch: received.seconds).text) }
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

/// A complete stored response, as far as deciding needs it. It never changes, and is one reference: a hit hands it on a
/// dozen times.
package final class StoredVariant: Equatable, Sendable {
    /// Its head.
    package let head: StoredHead
    /// The bytes of its body, as they came over the wire.
    package let bodyLength: UInt64
    /// What its fields say.
    package let facts: HeadFacts
    /// The fields as they were served last, and with which age: many hits fall into one second, and share them.
    private let served = Mutex<(age: Int64, fields: FieldBlock)?>(nil)

    /// A stored response; its fields are read here, once.
    package init(head: StoredHead, bodyLength: UInt64) {
        self.head = head
        self.bodyLength = bodyLength
        facts = HeadFacts(head)
    }

    /// Its fields with an age in seconds (RFC 9111 §5.1).
    func fields(ofAge age: Int64) -> FieldBlock {
        if let fields = served.withLock({ $0.flatMap { $0.age == age ? $0.fields : nil } }) { return fields }
        var fields = head.fields
        if fields.contains("Age") { fields = StoredFields.filtered(fields) { $0 != "age" } }
        fields.append(name: "Age", value: String(age))
        served.withLock { $0 = (age, fields) }
        return fields
    }

    /// Whether two are of the same head and length.
    package static func == (left: StoredVariant, right: StoredVariant) -> Bool {
        left === right || left.head == right.head && left.bodyLength == right.bodyLength
    }
}

/// What a request says of a field that responses are chosen by, in a form in which equal meanings are equal texts
/// (RFC 9111 §4.1).
enum SelectedValue: Equatable {
    /// The request has no such field.
    case absent
    /// Its lines, combined.
    case value(String)
    /// It is a secret, and there is no way to conceal it.
    case secret

    /// The fields that hold secrets: only what ``CacheRequest/conceal`` makes of their values is kept.
    static let secretNames: Set<String> = ["authorization", "cookie", "cookie2", "proxy-authorization"]

    /// The value of a field, by its name in lower case.
    ///
    /// Lines are joined by commas, and blanks around them go. The lists of codings, character sets and languages ignore
    /// case; of the first two the order means nothing, either. All other values are taken as they are.
    static func of(_ name: String, in request: CacheRequest) -> SelectedValue {
        let lines = request.fields.rawValues(of: name)
        guard !lines.isEmpty else { return .absent }
        if secretNames.contains(name) {
            guard let conceal = request.conceal else { return .secret }
            return .value(conceal(lines.map { ByteText.latin1($0) }.joined(separator: ", ")))
        }
        switch name {
        case "accept-encoding", "accept-charset":
            return .value(members(lines).sorted().joined(separator: ","))
        case "accept-language": return .value(members(lines).joined(separator: ","))
        default: return .value(lines.map { ByteText.latin1(ByteClass.trimmed($0)) }.joined(separator: ", "))
        }
    }

    /// The members of a list, in lower case, without the blanks around semicolons and equals signs.
    private static func members(_ lines: [ArraySlice<UInt8>]) -> [String] {
        lines.flatMap { line in
            ElementList(line).map { member in
                ByteText.latin1(member.lazy.filter { !ByteClass.isBlank($0) }.map(ByteClass.lowercased)[...])
            }
        }
    }
}
