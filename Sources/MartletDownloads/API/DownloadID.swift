/// What a download is known by, in other processes too.
public struct DownloadID: Hashable, Sendable, Codable, Comparable, CustomStringConvertible {
    /// The number.
    public let number: UInt64

    /// An identity by its number.
    public init(_ number: UInt64) {
        self.number = number
    }

    /// Orders by number: those that were added first come first.
    public static func < (left: DownloadID, right: DownloadID) -> Bool { left.number < right.number }

    /// The number.
    public var description: String { "\(number)" }
}
