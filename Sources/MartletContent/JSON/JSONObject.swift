/// The members of a JSON object, in the order received. Names are compared by their bytes (RFC 8259 §8.3), unlike
/// Swift's strings, for which “é” equals “e” with a combining accent. A name that occurs twice has its last value at
/// its first position, as in JavaScript. Lookup takes constant time.
public struct JSONObject: Sendable {
    /// A member of an object: a name and a value.
    public struct Member: Hashable, Sendable {
        fileprivate let exactName: ExactName
        /// The value of the member.
        public var value: JSONValue

        /// The name of the member.
        public var name: String { exactName.text }

        /// Creates a member with a name and a value.
        public init(_ name: String, _ value: JSONValue) {
            exactName = ExactName(text: name)
            self.value = value
        }
    }

    /// A name that is compared by its bytes.
    fileprivate struct ExactName: Hashable, Sendable {
        let text: String

        static func == (left: ExactName, right: ExactName) -> Bool { left.text.utf8.elementsEqual(right.text.utf8) }

        func hash(into hasher: inout Hasher) {
            for byte in text.utf8 { hasher.combine(byte) }
            hasher.combine(0xFF as UInt8)
        }
    }

    /// The number of members above which an index is built.
    private static let scanLimit = 8

    private var members: [Member] = []
    /// The positions of the names; empty up to ``scanLimit`` members.
    private var places: [ExactName: Int] = [:]

    /// Creates an object without members.
    public init() {}

    /// Creates an object of members; the last of several with one name is used.
    public init(_ members: some Sequence<Member>) { for member in members { set(member.name, member.value) } }

    /// Creates an object of names and values, in order.
    package init(_ members: [(String, JSONValue)]) { for (name, value) in members { set(name, value) } }

    /// The names of the members, in order.
    public var names: [String] { members.map(\.name) }

    /// The value of the member with a name; `nil` without such a member. Setting `nil` removes the member.
    public subscript(name: String) -> JSONValue? {
        get { place(of: name).map { members[$0].value } }
        set {
            if let newValue {
                set(name, newValue)
            } else if let place = place(of: name) {
                members.remove(at: place)
                places = [:]
                if members.count > JSONObject.scanLimit { buildIndex() }
            }
        }
    }

    /// Adds a member, or changes the value of the member with that name.
    package mutating func set(_ name: String, _ value: JSONValue) {
        if let place = place(of: name) {
            members[place].value = value
            return
        }
        members.append(Member(name, value))
        if members.count == JSONObject.scanLimit + 1 {
            buildIndex()
        } else if members.count > JSONObject.scanLimit {
            places[ExactName(text: name)] = members.count - 1
        }
    }

    private mutating func buildIndex() {
        for (place, member) in members.enumerated() { places[member.exactName] = place }
    }

    private func place(of name: String) -> Int? {
        let name = ExactName(text: name)
        return members.count > JSONObject.scanLimit ? places[name] : members.firstIndex { $0.exactName == name }
    }
}

extension JSONObject: RandomAccessCollection {
    /// The first index, 0.
    public var startIndex: Int { 0 }
    /// The number of members.
    public var endIndex: Int { members.count }
    /// The member at a position, from 0.
    public subscript(position: Int) -> Member { members[position] }
}

extension JSONObject: Hashable {
    /// Whether two objects have the same members, in any order.
    public static func == (left: JSONObject, right: JSONObject) -> Bool {
        left.count == right.count && left.allSatisfy { right[$0.name] == .some($0.value) }
    }

    /// Hashes the members, in any order.
    public func hash(into hasher: inout Hasher) { hasher.combine(members.reduce(0) { $0 ^ $1.hashValue }) }
}
