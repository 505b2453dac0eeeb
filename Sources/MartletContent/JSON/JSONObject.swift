/// The members of a JSON object, in the order they came.
///
/// Names are told apart byte by byte (RFC 8259 §8.3), where Swift's strings would take “é” for “e” with an accent behind it.
/// A name that occurs twice has its last value, at the place of its first, as JavaScript has it. Finding a member takes the
/// same time in large objects as in small ones.
public struct JSONObject: Sendable {
    /// A member.
    public struct Member: Hashable, Sendable {
        /// Its name.
        public let name: String
        /// Its value.
        public var value: JSONValue

        /// A member.
        public init(_ name: String, _ value: JSONValue) {
            self.name = name
            self.value = value
        }

        /// Whether names, byte by byte, and values are the same.
        public static func == (left: Member, right: Member) -> Bool {
            left.name.utf8.elementsEqual(right.name.utf8) && left.value == right.value
        }

        /// Hashes the name's bytes and the value.
        public func hash(into hasher: inout Hasher) {
            hasher.combine(ExactName(text: name))
            hasher.combine(value)
        }
    }

    /// A name that equals what has the same bytes.
    private struct ExactName: Hashable, Sendable {
        let text: String

        static func == (left: ExactName, right: ExactName) -> Bool {
            left.text.utf8.elementsEqual(right.text.utf8)
        }

        func hash(into hasher: inout Hasher) {
            for byte in text.utf8 { hasher.combine(byte) }
            hasher.combine(0xFF as UInt8)
        }
    }

    /// Above so many members there is an index of them.
    private static let scanLimit = 8

    private var members: [Member] = []
    /// Where each name is; empty as long as looking through the members does.
    private var places: [ExactName: Int] = [:]

    /// No members.
    public init() {}

    /// Members; of several with one name the last counts.
    public init(_ members: some Sequence<Member>) { for member in members { set(member.name, member.value) } }

    /// Members by name and value, in order.
    package init(_ members: [(String, JSONValue)]) { for (name, value) in members { set(name, value) } }

    /// The names, in order.
    public var names: [String] { members.map(\.name) }

    /// The value of a name; `nil` where there is none. Setting `nil` takes the member out.
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

    /// Adds a member, or changes the one of that name.
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
        for (place, member) in members.enumerated() { places[ExactName(text: member.name)] = place }
    }

    private func place(of name: String) -> Int? {
        if members.count > JSONObject.scanLimit { return places[ExactName(text: name)] }
        return members.firstIndex { $0.name.utf8.elementsEqual(name.utf8) }
    }
}

extension JSONObject: RandomAccessCollection {
    /// 0.
    public var startIndex: Int { 0 }
    /// The number of members.
    public var endIndex: Int { members.count }
    /// The member at a place.
    public subscript(position: Int) -> Member { members[position] }
}

extension JSONObject: Hashable {
    /// Whether both have the same members, in whatever order.
    public static func == (left: JSONObject, right: JSONObject) -> Bool {
        left.count == right.count && left.allSatisfy { right[$0.name] == .some($0.value) }
    }

    /// Hashes the members, in whatever order.
    public func hash(into hasher: inout Hasher) { hasher.combine(members.reduce(0) { $0 ^ $1.hashValue }) }
}
