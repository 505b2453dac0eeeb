public import MartletCore
import MartletStreams

/// A handle of a download: it provides the state and the progress, and can stop and resume the download.
///
/// A download that does not run holds no connection and no open file. Releasing the handle has no effect: a download of
/// ``HTTPSession/startDownload(_:to:options:)`` continues.
public final class Download: Sendable {
    /// The operations of a handle, implemented by the object that runs the download.
    package protocol Controller: Sendable {
        /// Stops the run; returns when the received bytes are stored.
        func pause() async
        /// Resumes, from a new URL if one is given.
        func resume(from url: HTTPURL?) async throws
        /// Cancels the download and removes the received bytes; returns when that is done.
        func cancel() async
        /// Changes the position among the waiting downloads.
        func setPriority(_ priority: DownloadPriority) async throws
        /// The URL without user info.
        var url: HTTPURL { get }
        var target: DownloadTarget { get }
        var options: DownloadOptions { get }
        /// The path of the file, once it is known.
        var path: FilePath? { get }
    }

    /// The identifier: unique in the directory of the manager, or in this process without a manager.
    public let id: DownloadID
    private let status: DownloadStatus
    private let controller: any Controller
    private let mapped: @Sendable (any Error) -> any Error

    /// Creates a handle.
    /// - Parameter mapped: Maps the error that ``value`` throws.
    package init(
        id: DownloadID, status: DownloadStatus, controller: any Controller,
        mapped: @escaping @Sendable (any Error) -> any Error = { $0 }
    ) {
        (self.id, self.status, self.controller) = (id, status, controller)
        self.mapped = mapped
    }

    /// The latest URL given for the file, without user info. ``DownloadResult/url`` is the URL after redirects.
    public var url: HTTPURL { controller.url }

    /// The target as it was given; absolute for a download of a ``DownloadManager``.
    public var target: DownloadTarget { controller.target }

    /// The options without header fields and settings that contain credentials, as a manager stores them.
    public var options: DownloadOptions { controller.options.stored }

    /// The path of the file, once it is known: for a directory as the target, after the server's response. The file
    /// exists when the download has finished; its path is then ``DownloadResult/path``.
    public var path: FilePath? { controller.path }

    /// The current state.
    public var state: DownloadState { status.state }

    /// The states: the current one first, then newer ones. A slow consumer skips states. The sequence ends when the
    /// state can no longer change, or the task is cancelled. The numbers of bytes are in ``progress``.
    public var states: DownloadStates { status.stateSequence }

    /// The progress in all states: the current value first, then newer ones. A slow consumer skips values.
    public var progress: DownloadProgressSequence { status.progressSequence }

    /// All events in order, starting with the last 256 past ones.
    public var events: EventSequence<DownloadEvent> { status.events.subscribe() }

    /// The result. Waits until the file is complete, also while the download is paused.
    /// - Throws: The ``HTTPError`` of a failed download, or its replacement by the error mapper of a host;
    ///   `CancellationError` if the download or the waiting task was cancelled, or the manager was closed.
    public var value: DownloadResult {
        get async throws {
            for await state in states {
                switch state {
                case .finished(let result): return result
                case .failed(let error): throw mapped(error)
                case .cancelled: throw CancellationError()
                case .waiting, .running, .verifying, .paused: continue
                }
            }
            throw CancellationError()
        }
    }

    /// Stops the download, stores the received bytes and closes all files. Has no effect on a download that is over.
    public func pause() async { await controller.pause() }

    /// Resumes after a pause or a failure. Has no effect while the download runs.
    /// - Parameter url: The new URL of the file, such as a freshly signed one; `nil` for the previous one. Received
    ///   bytes are reused if the validators of the file are the same there.
    /// - Throws: An ``HTTPError`` if the download is finished or was cancelled, or the URL cannot be parsed.
    public func resume(from url: String? = nil) async throws {
        try await controller.resume(from: try url.map { try HTTPSession.url($0) })
    }

    /// Cancels the download and removes the received bytes. Returns when that is done. A finished download stays.
    public func cancel() async { await controller.cancel() }

    /// Changes the position among the waiting downloads of its manager. Has no effect without a manager.
    /// - Throws: The errors of ``DownloadManager/setPriority(_:of:)``.
    public func setPriority(_ priority: DownloadPriority) async throws { try await controller.setPriority(priority) }

    /// The identifier of a download.
    public typealias ID = DownloadID
    /// The state of a download.
    public typealias State = DownloadState
    /// The progress of a download.
    public typealias Progress = DownloadProgress
    /// An event of a download.
    public typealias Event = DownloadEvent
    /// The result of a complete download.
    public typealias Result = DownloadResult
    /// The options of a download.
    public typealias Options = DownloadOptions
    /// The priority of a download.
    public typealias Priority = DownloadPriority
    /// The target of a download.
    public typealias Target = DownloadTarget
}

/// The identifier of a download, stable across processes.
public struct DownloadID: Hashable, Sendable, Codable, Comparable, CustomStringConvertible {
    /// The number of the download in its directory or process.
    public let number: UInt64

    /// Creates an identifier from its number.
    public init(_ number: UInt64) { self.number = number }

    /// Orders by number: downloads that were added first come first.
    public static func < (left: DownloadID, right: DownloadID) -> Bool { left.number < right.number }

    /// The number of the download in its directory or process.
    public var description: String { "\(number)" }
}

/// The state of a download. Two failures are equal if the codes of their errors are equal.
public enum DownloadState: Equatable, Sendable {
    /// The download is queued.
    case waiting
    /// The download runs, or waits for a retry.
    case running
    /// All bytes were received, and the file is being compared with its checksums.
    case verifying
    /// The download is paused until it is resumed. A manager's download stays paused in later processes.
    case paused
    /// The file is complete.
    case finished(DownloadResult)
    /// The download failed. It can be resumed.
    case failed(HTTPError)
    /// The download was cancelled. The received bytes are removed, unless the program cancelled only an HTTP call.
    case cancelled

    /// Whether the download is finished, failed or cancelled.
    public var hasEnded: Bool {
        switch self {
        case .finished, .failed, .cancelled: true
        case .waiting, .running, .verifying, .paused: false
        }
    }

    /// Whether the download is finished or cancelled. A failed one can be resumed.
    var isFinal: Bool { if case .failed = self { false } else { hasEnded } }

    /// Whether both are the same state, with the same result or the same ``HTTPError/code``.
    public static func == (left: DownloadState, right: DownloadState) -> Bool {
        switch (left, right) {
        case (.finished(let left), .finished(let right)): left == right
        case (.failed(let left), .failed(let right)): left.code == right.code
        case (.waiting, .waiting), (.running, .running), (.verifying, .verifying), (.paused, .paused),
            (.cancelled, .cancelled):
            true
        default: false
        }
    }
}

/// The priority of a download among the waiting ones. It rises while a download waits, so that none waits forever.
public enum DownloadPriority: Int, Hashable, Sendable, Codable, Comparable, CaseIterable {
    /// Starts after the others.
    case low = 0
    /// The default priority.
    case normal = 1
    /// Starts before the others.
    case high = 2

    /// Orders by urgency, the lowest first.
    public static func < (left: DownloadPriority, right: DownloadPriority) -> Bool { left.rawValue < right.rawValue }
}
