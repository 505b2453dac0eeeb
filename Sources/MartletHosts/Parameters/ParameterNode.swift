import MartletCore

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
    func set(_ value: ParameterValue) { kind = .value(value) }

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
    func child(_ key: String) -> ParameterNode { record[key] ?? replace(key) }

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

/// Where in a tree of parameters something stands, as in `filter[price][0]`.
struct ParameterPath {
    /// The names and numbers on the way, outermost first.
    private(set) var steps: [String] = []

    /// The top.
    init() {}

    /// The place of a coding path.
    init(_ codingPath: [any CodingKey]) {
        steps = codingPath.map { $0.intValue.map(String.init) ?? $0.stringValue }
    }

    /// A value by its name.
    /// - Throws: Where it would be too deep.
    func inside(_ key: String) throws(ParameterError) -> ParameterPath {
        guard steps.count < ParameterValue.depthLimit else { throw ParameterError(.tooDeep, at: self) }
        var path = self
        path.steps.append(key)
        return path
    }

    /// A value by its number.
    /// - Throws: Where it would be too deep.
    func inside(_ index: Int) throws(ParameterError) -> ParameterPath { try inside(String(index)) }

    /// The path in words, cut where it is long.
    var text: String {
        guard let first = steps.first else { return "at the top" }
        var text = first
        for step in steps.dropFirst() {
            text += "[\(step)]"
            if text.utf8.count > 200 { return "\(text)…" }
        }
        return text
    }
}

/// The name of a value, or its place in a list, as a coding key.
struct ParameterKey: CodingKey {
    let stringValue: String
    var intValue: Int?

    init(_ index: Int) {
        intValue = index
        stringValue = String(index)
    }

    init(intValue: Int) { self.init(intValue) }

    init(stringValue: String) { self.stringValue = stringValue }
}

/// Why parameters cannot be encoded. It names where the value stands, and never the value.
public struct ParameterError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What was wrong. More may be added: a `switch` needs a default.
    public enum Code: String, Hashable, Sendable {
        /// Infinity or NaN, which no format has.
        case notFinite
        /// A date that the chosen format cannot hold: ISO 8601 ends at the year 9999.
        case dateOutOfRange
        /// A whole number of more digits than any format keeps.
        case numberOutOfRange
        /// Deeper than ``ParameterValue/depthLimit``: most often an object that contains itself.
        case tooDeep
        /// Parameters of a form or a query are an object: their names are its keys.
        case notAnObject
        /// A list that is separated by commas can hold plain values alone.
        case notAList
        /// A property list has no null.
        case nullNotAllowed
        /// A value asked its encoder for containers of two kinds.
        case conflictingContainers
    }

    /// What was wrong.
    public let code: Code
    /// Where, as in `filter[price][0]`; `at the top` for the whole.
    public let path: String

    init(_ code: Code, at path: ParameterPath) {
        self.code = code
        self.path = path.text
    }

    /// What was wrong and where, in words.
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

/// Names of Swift as names of many services: `userName` as `user_name`.
enum SnakeCase {
    /// The name in lower case, with `_` before each word.
    ///
    /// A word begins at a capital behind a letter or digit that is none, and at the last of several capitals where a small
    /// letter follows: `myURLProperty` is `my_url_property`. Everything else is kept.
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
                let endsCapitals =
                    before.isUppercase && characters.indices.contains(index + 1)
                    && characters[index + 1].isLowercase
                if before.isLowercase || before.isNumber || endsCapitals { text.append("_") }
            }
            text += character.lowercased()
        }
        return text
    }
}
