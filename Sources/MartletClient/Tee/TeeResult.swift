/// How one sink of a tee ended.
public enum TeeResult: Sendable {
    /// It took the whole body: so many bytes.
    case finished(byteCount: UInt64)
    /// It threw, after it had taken so many bytes.
    case failed(any Error, byteCount: UInt64)

    /// What it threw; `nil` where it took all.
    public var error: (any Error)? {
        switch self {
        case .finished: nil
        case .failed(let error, _): error
        }
    }

    /// How many bytes it took.
    public var byteCount: UInt64 {
        switch self {
        case .finished(let count), .failed(_, let count): count
        }
    }

    /// Whether it took the whole body.
    public var isFinished: Bool { error == nil }
}
