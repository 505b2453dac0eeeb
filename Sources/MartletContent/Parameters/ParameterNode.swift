/// A value that containers write into, on its way to become a ``ParameterValue``. It is a class, since containers are copied,
/// and all copies must write to one place.
final class ParameterNode {
    enum Kind: Equatable {
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
    func set(_ value: ParameterValue) { kind = .value(value) }

    /// Makes an empty node a list or a record.
    /// - Returns: Whether it is of that kind now.
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

    /// A new value of the record, in place of the one with the name.
    func replace(_ key: String) -> ParameterNode {
        let node = ParameterNode()
        record[key] = node
        return node
    }

    /// The value of the record with the name.
    func child(_ key: String) -> ParameterNode { record[key] ?? replace(key) }

    /// The value; an empty object if nothing was written.
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
    /// The names and numbers on the way, outermost first.
    private(set) var steps: [String]

    /// The position of a coding path; the top without one.
    init(_ codingPath: [any CodingKey] = []) {
        steps = codingPath.map { $0.intValue.map(String.init) ?? $0.stringValue }
    }

    /// The position of a value by its name, or by its number in a list.
    /// - Throws: If it is too deep.
    func inside(_ key: some CustomStringConvertible) throws(ParameterError) -> ParameterPath {
        guard steps.count < ParameterValue.depthLimit else { throw ParameterError(.tooDeep, at: self) }
        var path = self
        path.steps.append(key.description)
        return path
    }

    /// The path in words; a long one is truncated.
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
    /// The kind of error. More may be added: a `switch` needs a default.
    public enum Code: String, Hashable, Sendable {
        /// Infinity or NaN, which no format has.
        case notFinite
        /// A date that the chosen format cannot hold: ISO 8601 ends at the year 9999.
        case dateOutOfRange
        /// An integer with more digits than any format keeps.
        case numberOutOfRange
        /// Deeper than ``ParameterValue/depthLimit``: most often an object that contains itself.
        case tooDeep
        /// Parameters of a form or a query are not an object, whose keys are their names.
        case notAnObject
        /// A comma-separated list contains something other than plain values.
        case notAList
        /// A property list has no null.
        case nullNotAllowed
        /// A value requested containers of two kinds from its encoder.
        case conflictingContainers
    }

    /// The kind of error.
    public let code: Code
    /// The position of the value, such as `filter[price][0]`; `at the top` for the whole.
    public let path: String

    init(_ code: Code, at path: ParameterPath) {
        self.code = code
        self.path = path.text
    }

    /// The error and its position in words.
    public var description: String {
        let problem =
            switch code {
            case .notFinite: "a number is infinite or not a number"
            case .dateOutOfRange: "a date cannot be written in the chosen format"
            case .numberOutOfRange: "a whole number has more digits than can be kept"
            case .tooDeep: "values are nested more than \(ParameterValue.depthLimit) deep"
            case .notAnObject: "parameters of a query or a form must have names"
            case .notAList: "a list separated by commas can hold plain values alone"
            case .nullNotAllowed: "a property list has no null"
            case .conflictingContainers: "a value encoded itself in two ways at once"
            }
        return "\(problem) (\(path))"
    }
}

/// Converts names of Swift to the names of many services: `userName` to `user_name`.
enum SnakeCase {
    /// The name in lower case, with `_` before each word.
    ///
    /// A word begins at a capital after a lower-case letter or digit, and at the last of several capitals before a lower-case
    /// letter: `myURLProperty` is `my_url_property`. All other characters are kept.
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
