/// What was handed out of a body, up to a limit.
struct BodyMemory: Sendable {
    private let limit: Int
    private var pieces: [[UInt8]] = []
    private var byteCount = 0
    private var isWhole: Bool

    /// - Parameter isWhole: Whether nothing was handed out before.
    init(limit: Int, isWhole: Bool) {
        self.limit = limit
        self.isWhole = isWhole
    }

    mutating func add(_ piece: [UInt8]) {
        guard isWhole else { return }
        guard piece.count <= limit - byteCount else {
            (pieces, isWhole) = ([], false)
            return
        }
        byteCount += piece.count
        pieces.append(piece)
    }

    /// All that was handed out; `nil` where a part of it is not known any more.
    var bytes: [UInt8]? { isWhole ? Array(pieces.joined()) : nil }
}
