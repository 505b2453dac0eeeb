/// A value on its way to become a ``ParameterValue``: what containers write into.
///
/// A class, since a container is a value that is copied, and all of its copies must write to one place.
final class ParameterNode {
    private enum Kind {
        case empty
        case value(ParameterValue)
        case list
        case record
    }

    private var kind = Kind.empty
    // Apart from the kind, so that they grow in place.
    private var list: [ParameterNode] = []
    private var record: [String: ParameterNode] = [:]

    /// Makes it a plain value, whatever it was.
    func set(_ value: ParameterValue) {
        kind = .value(value)
    }

    /// How many values the list has.
    var count: Int { list.count }

    /// Makes it a list, unless it is something else already.
    func becomeList() -> Bool {
        if case .empty = kind { kind = .list }
        if case .list = kind { return true }
        return false
    }

    /// Makes it a record, unless it is something else already.
    func becomeRecord() -> Bool {
        if case .empty = kind { kind = .record }
        if case .record = kind { return true }
        return false
    }

    /// A value at the end of the list.
    func append() -> ParameterNode {
        let node = ParameterNode()
        list.append(node)
        return node
    }

    /// A fresh value of the record, in place of what has the name.
    func replace(_ key: String) -> ParameterNode {
        let node = ParameterNode()
        record[key] = node
        return node
    }

    /// The value of the record that has the name.
    func child(_ key: String) -> ParameterNode {
        record[key] ?? replace(key)
    }

    /// What was written; an empty object where nothing was.
    var value: ParameterValue {
        switch kind {
        case .empty: .object([:])
        case .value(let value): value
        case .list: .array(list.map(\.value))
        case .record: .object(record.mapValues(\.value))
        }
    }
}
