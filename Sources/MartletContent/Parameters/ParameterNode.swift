/// A node that containers write into, and that becomes a ``ParameterValue``. It is a class, because containers are
/// copied, and all copies must write to the same node.
final class ParameterNode {
    enum Kind: Equatable {
        case empty
        case value(ParameterValue)
        case list
        case record
    }

    private var kind = Kind.empty
    // Stored apart from the kind, so that they grow in place.
    private var list: [ParameterNode] = []
    private var record: [String: ParameterNode] = [:]

    /// Makes the node a plain value, regardless of its kind.
    func set(_ value: ParameterValue) { kind = .value(value) }

    /// Makes an empty node a list or a record.
    /// - Returns: Whether the node is now of that kind.
    func become(_ wanted: Kind) -> Bool {
        if kind == .empty { kind = wanted }
        return kind == wanted
    }

    /// The number of values in the list.
    var count: Int { list.count }

    /// Appends a value to the list.
    func append() -> ParameterNode {
        let node = ParameterNode()
        list.append(node)
        return node
    }

    /// Adds a node to the record, replacing an existing node with the name, and returns it.
    func replace(_ key: String) -> ParameterNode {
        let node = ParameterNode()
        record[key] = node
        return node
    }

    /// Returns the record's node with the name, and creates the node if it does not exist.
    func child(_ key: String) -> ParameterNode { record[key] ?? replace(key) }

    /// The value of the node; an empty object if nothing was written.
    var value: ParameterValue {
        switch kind {
        case .empty: .object([:])
        case .value(let value): value
        case .list: .array(list.map(\.value))
        case .record: .object(record.mapValues(\.value))
        }
    }
}

/// A position in a tree of parameters, such as `filter[price][0]`.
struct ParameterPath {
    /// The names and indexes of the path, outermost first.
    private(set) var steps: [String]

    /// Creates the position of a coding path. An empty path is the top of the tree.
    init(_ codingPath: [any CodingKey] = []) {
        steps = codingPath.map { $0.intValue.map(String.init) ?? $0.stringValue }
    }

    /// Returns the position of a nested value by its name, or by its index in a list.
    /// - Throws: A ``ParameterError`` if the position is too deep.
    func inside(_ key: some CustomStringConvertible) throws(ParameterError) -> ParameterPath {
        guard steps.count < ParameterValue.depthLimit else { throw ParameterError(.tooDeep, at: self) }
        var path = self
        path.steps.append(key.description)
        return path
    }

    /// The path as text; a long one is truncated.
    var text: String {
        guard var text = steps.first else { return "at the top" }
        for step in steps.dropFirst() {
            text += "[\(step)]"
            if text.utf8.count > 200 { return "\(text)…" }
        }
        return text
    }
}

/// The name of a value, or its index in a list, as a coding key.
struct ParameterKey: CodingKey {
    let stringValue: String
    var intValue: Int?

    init(intValue: Int) {
        self.intValue = intValue
        stringValue = String(intValue)
    }

    init(stringValue: String) { self.stringValue = stringValue }
}

/// Parameters that cannot be encoded. The error contains the position of the value, and never the value.
public struct ParameterError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of error. More kinds may be added: a `switch` needs a default.
    public enum Code: String, Hashable, Sendable {
        /// A number is infinite or NaN, which no format supports.
        case notFinite
        /// A date is outside of the chosen format: ISO 8601 ends at the year 9999.
        case dateOutOfRange
        /// An integer has more digits than any format preserves.
        case numberOutOfRange
        /// A value is nested deeper than ``ParameterValue/depthLimit``: mostly an object that contains itself.
        case tooDeep
        /// The parameters of a form or a query are not an object, so they have no names.
        case notAnObject
        /// A comma-separated list contains an array, a set or an object.
        case notAList
        /// A property list contains null, which the format does not support.
        case nullNotAllowed
        /// A value requested containers of two kinds from its encoder.
        case conflictingContainers
    }

    /// The kind of error.
    public let code: Code
    /// The position of the value, such as `filter[price][0]`; `at the top` for the parameters as a whole.
    public let path: String

    init(_ code: Code, at path: ParameterPath) {
        self.code = code
        self.path = path.text
    }

    /// The error and its position, as text.
    public var description: String {
        let problem =
            switch code {
            case .notFinite: "a number is infinite or NaN"
            case .dateOutOfRange: "a date cannot be written in the chosen format"
            case .numberOutOfRange: "an integer has more digits than any format preserves"
            case .tooDeep: "values are nested more than \(ParameterValue.depthLimit) deep"
            case .notAnObject: "parameters of a query or a form must have names"
            case .notAList: "a comma-separated list can contain only plain values"
            case .nullNotAllowed: "a property list cannot contain null"
            case .conflictingContainers: "a value requested two kinds of containers from its encoder"
            }
        return "\(problem) (\(path))"
    }
}

/// The conversion of camel case to snake case, which many services use: `userName` to `user_name`.
enum SnakeCase {
    /// Returns the name in lower case, with `_` between words.
    ///
    /// A word begins at a capital after a lower-case letter or digit, and at the last of several capitals before a
    /// lower-case letter: `myURLProperty` is `my_url_property`. All other characters are unchanged.
    static func text(_ name: String) -> String {
        let characters = Array(name)
        var text = ""
        for (index, character) in characters.enumerated() {
            guard character.isUppercase else {
                text.append(character)
                continue
            }
            if index > 0 {
                let before = characters[index - 1]
                let next = characters.dropFirst(index + 1).first
                let endsCapitals = before.isUppercase && next?.isLowercase == true
                if before.isLowercase || before.isNumber || endsCapitals { text.append("_") }
            }
            text += character.lowercased()
        }
        return text
    }
}
