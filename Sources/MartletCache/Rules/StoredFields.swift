package import MartletWire
import Synchronization

/// The fields of a response that are stored (RFC 9111 §3.1).
enum StoredFields {
    /// The fields of a connection or proxy, which are never stored.
    private static let hopByHop: Set<String> = [
        "connection", "proxy-connection", "keep-alive", "te", "transfer-encoding", "upgrade", "proxy-authenticate",
        "proxy-authentication-info", "proxy-authorization", "trailer",
    ]
    /// The fields that a cache depends on: a response whose `Connection` names one is not stored (RFC 9110 §7.6.1).
    private static let needed: Set<String> = [
        "cache-control", "vary", "date", "age", "expires", "etag", "last-modified", "content-type", "content-encoding",
        "content-range", "content-location", "location", "pragma",
    ]

    /// Returns the names in `Connection`, in lower case.
    private static func connectionNames(_ fields: FieldBlock) -> Set<String> {
        let members = fields.rawValues(of: "Connection").flatMap { ElementList($0) }
        return Set(members.filter { $0.count <= 256 }.map(\.lowercasedText))
    }

    /// Whether `Connection` names a field that the use of a response depends on.
    static func connectionNamesRequiredField(_ fields: FieldBlock) -> Bool {
        !connectionNames(fields).isDisjoint(with: needed)
    }

    /// Returns the fields of a response that are stored, with a `Date` if it has no valid one (RFC 9110 §6.6.1).
    static func kept(_ fields: FieldBlock, received: WallTime) -> FieldBlock {
        var dropped = hopByHop.union(connectionNames(fields))
        // `Transfer-Encoding` overrides the length, which may be wrong (RFC 9112 §6.3).
        if fields.contains("Transfer-Encoding") { dropped.insert("content-length") }
        let hasDate = MessageDates.single("Date", in: fields, received: received) != nil
        if !hasDate { dropped.insert("date") }
        var kept = fields.filtered { !dropped.contains($0) }
        if !hasDate { kept.append(name: "Date", value: HTTPDate(secondsSinceEpoch: received.seconds).text) }
        return kept
    }
}

/// A complete stored response, with its fields parsed once. A class, because a hit passes it on a dozen times.
package final class StoredVariant: Sendable {
    package let head: StoredHead
    /// The length of its body in bytes, as received.
    package let bodyLength: UInt64
    package let control: CacheControl
    package let dates: MessageDates
    package let entityTag: EntityTag?
    /// The negotiated codings of its stored body, in lower case; usually none.
    let codings: [String]
    /// The fields that were served last, and their age. Many hits within one second share them.
    private let served = Mutex<(age: Int64, fields: FieldBlock)?>(nil)

    package init(head: StoredHead, bodyLength: UInt64) {
        (self.head, self.bodyLength) = (head, bodyLength)
        control = CacheControl(response: head.fields)
        dates = MessageDates(head.fields, received: head.responseTime)
        entityTag = EntityTag(of: head.fields)
        codings = ContentCodingRule.codings(of: head.fields)
    }

    /// Returns its fields with this `Age`, in seconds (RFC 9111 §5.1).
    func fields(ofAge age: Int64) -> FieldBlock {
        if let fields = served.withLock({ $0.flatMap { $0.age == age ? $0.fields : nil } }) { return fields }
        var fields = head.fields
        if fields.contains("Age") { fields = fields.filtered { $0 != "age" } }
        fields.append(name: "Age", value: String(age))
        served.withLock { $0 = (age, fields) }
        return fields
    }
}
