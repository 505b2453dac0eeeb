import MartletWire
import Synchronization

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
