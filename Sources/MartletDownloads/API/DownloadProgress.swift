public import MartletCore

/// The progress of a download: a state, not an event.
public struct DownloadProgress: Hashable, Sendable {
    /// The number of received bytes of the file, including those of earlier runs and those that are still to be
    /// written. Updated about 20 times a second; after the run it equals ``writtenByteCount``.
    public var completedByteCount: UInt64 = 0
    /// The number of bytes written to the part file, in pieces of up to 512 KiB. The bytes of the last checkpoint
    /// (``DownloadOptions/checkpointInterval``) survive the process and a power cut.
    public var writtenByteCount: UInt64 = 0
    /// The length of the file in bytes; `nil` while it is unknown.
    public var totalByteCount: UInt64?
    /// The number of bytes that earlier runs received and this run reuses.
    public var resumedByteCount: UInt64 = 0
    /// The number of bytes of response bodies that this run received, including discarded ones.
    public var receivedByteCount: UInt64 = 0
    /// The rate in bytes per second over the last 10 s of this run; 0 if nothing arrived in that time.
    public var bytesPerSecond: Double = 0
    /// The time since bytes last arrived; zero within the first second.
    public var stalled: Duration = .zero
    /// The number of connections that receive bytes.
    public var connectionCount: Int = 0
    /// Whether the run is over: complete, paused, failed or cancelled.
    public var isFinished = false

    /// Creates the progress of a download without bytes.
    public init() {}

    /// Sets the progress to that of a complete file.
    mutating func complete(_ byteCount: UInt64) {
        (completedByteCount, writtenByteCount, totalByteCount) = (byteCount, byteCount, byteCount)
    }

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

/// A sequence of the states of a download.
public typealias DownloadStates = LatestValues<DownloadState>

/// A sequence of the progress of a download.
public typealias DownloadProgressSequence = LatestValues<DownloadProgress>

/// A complete download.
public struct DownloadResult: Hashable, Sendable, CustomStringConvertible {
    /// The path of the file.
    public var path: FilePath
    /// The length of the file in bytes.
    public var byteCount: UInt64
    /// The number of bytes that earlier runs received.
    public var resumedByteCount: UInt64
    /// The number of bytes of response bodies that this run received, including discarded ones.
    public var receivedByteCount: UInt64
    /// The checksums that the file was compared with.
    public var verified: [Checksum]
    /// The URL after redirects, without user info.
    public var url: HTTPURL
    /// The measurements of the run that completed the file; `nil` if that was in an earlier process, and for an
    /// existing file (``DownloadOptions/Collision/skip``).
    public var metrics: DownloadMetrics?
    /// The value of `Content-Type`; `nil` if this run has not seen it. Not stored.
    package var contentType: String?

    /// Creates a result from its parts.
    public init(
        path: FilePath, byteCount: UInt64, resumedByteCount: UInt64 = 0, receivedByteCount: UInt64,
        verified: [Checksum] = [], url: HTTPURL, metrics: DownloadMetrics? = nil
    ) {
        (self.path, self.byteCount, self.resumedByteCount) = (path, byteCount, resumedByteCount)
        (self.receivedByteCount, self.verified, self.url) = (receivedByteCount, verified, url)
        self.metrics = metrics
    }

    /// The path, the numbers of bytes and the verified checksums on one line.
    public var description: String {
        "\(path): \(byteCount) bytes, \(resumedByteCount) resumed\(verified.map { ", verified \($0)" }.joined())"
    }
}

/// The measurements of a run that completed a file.
public struct DownloadMetrics: Hashable, Sendable {
    /// The time from the start of the run until the file had its name, including retries and verification.
    public var duration: Duration = .zero
    /// The number of requests; redirects are not counted.
    public var requestCount = 0
    /// The number of retries after transient failures (``DownloadEvent/retrying(_:after:failures:)``).
    public var retryCount = 0
    /// The number of times that the file was fetched from its start again (``DownloadEvent/restarted(_:)``).
    public var restartCount = 0
    /// The maximum number of segments that were received at the same time, each on its own connection.
    public var connectionCount = 0

    /// The number of bytes of the file received from each URL, including bytes before a restart. The keys are the
    /// given URLs, without user info.
    public var receivedByteCounts: [HTTPURL: UInt64] = [:]

    /// Creates measurements that are all zero.
    public init() {}
}
