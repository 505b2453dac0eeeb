/// The reason why a property list is refused before it is decoded.
///
/// Foundation's parsers are recursive and follow every reference of a binary property list. A list that would exhaust the
/// stack, the memory or the time is refused first.
public struct PropertyListError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of fault. More may be added: a `switch` needs a default.
    public enum Reason: String, Hashable, Sendable {
        /// Arrays and dictionaries are nested more than 512 deep.
        case tooDeep
        /// The list has more than a million objects, each reference to an object counted.
        case tooManyObjects
        /// An array or a dictionary of a binary list contains itself.
        case cycle
        /// A binary list's trailer, count, offset or reference points outside the list, or a text does not fit its byte
        /// order mark.
        case malformed
    }

    /// The kind of fault.
    public let reason: Reason

    /// Creates an error.
    public init(reason: Reason) {
        self.reason = reason
    }

    /// The fault in words.
    public var description: String {
        switch reason {
        case .tooDeep: "the property list is nested more than \(PropertyListScanner.depthLimit) deep"
        case .tooManyObjects:
            "the property list has more than \(PropertyListScanner.objectLimit) objects"
        case .cycle: "an array or a dictionary of the property list contains itself"
        case .malformed: "the property list points outside itself, or does not fit its byte order mark"
        }
    }
}
