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
