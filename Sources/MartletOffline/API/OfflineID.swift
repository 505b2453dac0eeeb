/// What a frozen request is known by in its queue, in other processes too.
public struct OfflineID: Hashable, Sendable, Codable, Comparable, CustomStringConvertible {
    /// The number.
    public let number: UInt64

    /// An identity by its number.
    public init(_ number: UInt64) {
        self.number = number
    }

    /// Orders by number: those that were submitted first come first.
    public static func < (left: OfflineID, right: OfflineID) -> Bool { left.number < right.number }

    /// The number.
    public var description: String { "\(number)" }
}
