public import MartletCore

/// The progress of a download: a state, not an event.
public struct DownloadProgress: Hashable, Sendable {
    /// The bytes of the file that are received, including those of earlier runs.
    public var completedByteCount: UInt64 = 0
    /// The length of the file in bytes; `nil` while it is unknown.
    public var totalByteCount: UInt64?
    /// The bytes of the file that earlier runs received and this run reuses.
    public var resumedByteCount: UInt64 = 0
    /// The bytes of response bodies that this run received, including discarded ones.
    public var receivedByteCount: UInt64 = 0
    /// The rate in bytes per second over the last 10 s of this run; 0 if nothing arrived in that time.
    public var bytesPerSecond: Double = 0
    /// The time since bytes last arrived; zero while they do.
    public var stalled: Duration = .zero
    /// The number of connections that receive bytes.
    public var connectionCount: Int = 0
    /// Whether the run is over: complete, paused, failed or cancelled.
    public var isFinished = false

    /// No progress.
    public init() {}

    /// The received part, 0 to 1; `nil` while the length is unknown. An empty file is complete from the start.
    public var fractionCompleted: Double? {
        guard let totalByteCount else { return nil }
        return totalByteCount == 0 ? 1 : min(1, Double(completedByteCount) / Double(totalByteCount))
    }

    /// The remaining time at the current rate; `nil` while the length is unknown or nothing arrives.
    public var timeLeft: Duration? {
        guard let totalByteCount, bytesPerSecond > 0, stalled == .zero else { return nil }
        let seconds = Double(totalByteCount - min(totalByteCount, completedByteCount)) / bytesPerSecond
        return .seconds(min(seconds, 1e9))
    }
}

/// The states of a download.
public typealias DownloadStates = DownloadValues<DownloadState>

/// The progress of a download.
public typealias DownloadProgressSequence = DownloadValues<DownloadProgress>

/// The values of a property of a download that changes: the current one first, then each newer one.
///
/// A slow consumer skips values, and always receives the last one. Cancelling the iterating task ends its iteration only.
public struct DownloadValues<Element: Sendable>: AsyncSequence, Sendable {
    /// Iteration does not fail.
    public typealias Failure = Never

    private let newest: @Sendable (UInt64) async -> (version: UInt64, value: Element)?
    private let latest: @Sendable () -> Element

    /// The values of a source, each converted to an element.
    init<Value>(_ source: CurrentValue<Value>, _ element: @escaping @Sendable (Value) -> Element) {
        newest = { await source.next(after: $0).map { ($0.version, element($0.value)) } }
        latest = { element(source.value) }
    }

    /// The current value.
    public var current: Element { latest() }

    /// One pass over the values.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let values: DownloadValues
        fileprivate var seen: UInt64 = 0

        /// The newest value that this iterator has not returned; `nil` after the last one, or when cancelled.
        public mutating func next() async -> Element? { await next(isolation: #isolation) }

        /// The newest value that this iterator has not returned; `nil` after the last one, or when cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> Element? {
            guard let (version, value) = await values.newest(seen) else { return nil }
            seen = version
            return value
        }
    }

    /// A pass that starts with the current value.
    public func makeAsyncIterator() -> Iterator { Iterator(values: self) }
}

/// A complete download.
public struct DownloadResult: Hashable, Sendable {
    /// The path of the file.
    public var path: FilePath
    /// The length of the file in bytes.
    public var byteCount: UInt64
    /// The bytes that earlier runs received.
    public var resumedByteCount: UInt64
    /// The bytes of response bodies that this run received, including discarded ones.
    public var receivedByteCount: UInt64
    /// The checksums that the file was compared with.
    public var verified: [Checksum]
    /// The URL after redirects, without user info.
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
