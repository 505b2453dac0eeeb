import MartletURL
import MartletCaching
public import MartletCore
import MartletTransport
public import SystemPackage

/// How far a download has come: a state, not an event.
public struct DownloadProgress: Hashable, Sendable {
    /// Bytes of the file that are there, those of earlier runs included.
    public var completedByteCount: UInt64 = 0
    /// Bytes of the file in all; `nil` while that is not known.
    public var totalByteCount: UInt64?
    /// Bytes of the file that earlier runs left, as far as they were kept.
    public var resumedByteCount: UInt64 = 0
    /// Bytes of bodies that this run has received, those that had to be thrown away included.
    public var receivedByteCount: UInt64 = 0
    /// Bytes a second, over the last 10 s of this run; 0 when nothing came in that time.
    public var bytesPerSecond: Double = 0
    /// How long nothing has come; zero while bytes come.
    public var stalled: Duration = .zero
    /// How many connections receive now.
    public var connectionCount: Int = 0
    /// Whether the run is over: complete, paused, failed or cancelled.
    public var isFinished = false

    /// Nothing yet.
    public init() {}

    /// The part that is there, 0 to 1; `nil` while the whole is not known. An empty file is whole from the start.
    public var fractionCompleted: Double? {
        guard let totalByteCount else { return nil }
        return totalByteCount == 0 ? 1 : min(1, Double(completedByteCount) / Double(totalByteCount))
    }

    /// How long the rest will take at the present rate; `nil` while the whole is not known or nothing comes.
    public var timeLeft: Duration? {
        guard let totalByteCount, bytesPerSecond > 0, stalled == .zero else { return nil }
        let seconds = Double(totalByteCount - min(totalByteCount, completedByteCount)) / bytesPerSecond
        return .seconds(min(seconds, 1e9))
    }
}

/// How far a download has come: the present value first, then newer ones. Who is slow skips what it missed, and always gets
/// the last one. Cancelling the iterating task ends its iteration and touches nothing else.
public struct DownloadProgressSequence: AsyncSequence, Sendable {
    /// What iteration gives.
    public typealias Element = DownloadProgress
    /// Iteration does not fail.
    public typealias Failure = Never

    let source: NewestValue<DownloadProgress>

    /// One pass over the values.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate var reader: ValueReader<DownloadProgress>

        /// The newest value that this iterator has not given yet; `nil` after the last one, or when cancelled.
        public mutating func next() async -> DownloadProgress? { await reader.next() }

        /// The newest value that this iterator has not given yet; `nil` after the last one, or when cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> DownloadProgress? {
            await reader.next()
        }
    }

    /// A pass that begins with the present value.
    public func makeAsyncIterator() -> Iterator { Iterator(reader: ValueReader(source)) }
}

/// A download that is complete.
public struct DownloadResult: Hashable, Sendable {
    /// The file.
    public var path: FilePath
    /// Its length in bytes.
    public var byteCount: UInt64
    /// How much of it came in earlier runs.
    public var resumedByteCount: UInt64
    /// Bytes of bodies that this run received, those that had to be thrown away included.
    public var receivedByteCount: UInt64
    /// The checksums that it was compared with.
    public var verified: [Checksum]
    /// Where it came from, behind redirects, without user info.
    public var url: HTTPURL

    /// A result.
    public init(
        path: FilePath, byteCount: UInt64, resumedByteCount: UInt64 = 0, receivedByteCount: UInt64,
        verified: [Checksum] = [], url: HTTPURL
    ) {
        self.path = path
        self.byteCount = byteCount
        self.resumedByteCount = resumedByteCount
        self.receivedByteCount = receivedByteCount
        self.verified = verified
        self.url = url
    }
}
