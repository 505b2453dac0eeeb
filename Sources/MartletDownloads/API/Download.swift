import MartletURL
import MartletCaching
public import MartletCore
import MartletStreams
import MartletTransport
public import SystemPackage

/// A download that one holds: what it is doing, how far it has come, and the means to stop it and to let it go on.
///
/// It keeps no connection and no file open when it does not run. Letting go of it changes nothing; one that was begun by
/// ``MartletCore/HTTPSession/beginDownload(_:to:options:)`` runs on.
public final class Download: Sendable {
    /// What a download's handle asks of whoever runs it.
    package protocol Controller: Sendable {
        /// Stops the run; returns when what has come is kept.
        func pause() async
        /// Goes on, from a new URL where one is given.
        func resume(from url: HTTPURL?) async throws
        /// Ends it and removes what has come; returns when that is done.
        func cancel() async
        /// Changes its place among those that wait.
        func setPriority(_ priority: DownloadPriority) async
        /// Where the file is, without user info.
        var url: HTTPURL { get }
        /// Where it goes.
        var target: DownloadTarget { get }
        /// Its name, once it is known.
        var path: FilePath? { get }
    }

    /// Its number, unique in its directory or, without one, in this process.
    public let id: DownloadID
    private let status: DownloadStatus
    private let controller: any Controller

    /// A handle.
    package init(id: DownloadID, status: DownloadStatus, controller: any Controller) {
        self.id = id
        self.status = status
        self.controller = controller
    }

    /// Where the file is said to be, last: without user name and password. Behind redirects it may be elsewhere, which
    /// ``DownloadResult/url`` tells.
    public var url: HTTPURL { controller.url }

    /// Where it goes, as it was asked for; absolute for a download of a ``DownloadManager``.
    public var target: DownloadTarget { controller.target }

    /// The file's name, once it is known: in a folder, that is when the server has answered. The file is there when the
    /// download is finished, under the name that its ``DownloadResult`` says.
    public var path: FilePath? { controller.path }

    /// What it is doing.
    public var state: DownloadState { status.state }

    /// What it is doing: the present state first, then each newer one; who is slow skips what it missed. Ends when the
    /// download can no longer change, or with the task.
    public var states: DownloadStates { DownloadStates(source: status.states) }

    /// How far it has come: newest values, the present one first. A slow consumer skips what it missed and holds nobody up.
    public var progress: DownloadProgressSequence { DownloadProgressSequence(source: status.progress) }

    /// All that happens, in order, beginning with the last 256 events that have happened.
    public var events: EventSequence<DownloadEvent> { status.events.subscribe() }

    /// The file, once it is there. Waits through pauses.
    /// - Throws: The ``MartletCore/HTTPError`` that ended it; `CancellationError` when it was cancelled, or the task that awaits it.
    public var value: DownloadResult {
        get async throws {
            for await state in states {
                switch state {
                case .finished(let result): return result
                case .failed(let error): throw error
                case .cancelled: throw CancellationError()
                case .waiting, .running, .verifying, .paused: continue
                }
            }
            throw CancellationError()
        }
    }

    /// Stops it, keeping what has come. Returns when no connection and no file is open any more. Nothing where it is over.
    public func pause() async { await controller.pause() }

    /// Goes on after a pause or a failure. Nothing where it runs.
    /// - Parameter url: Where the file is now, such as a freshly signed URL; `nil` for where it was. What has come is kept
    ///   where the validators are the same there.
    /// - Throws: An ``MartletCore/HTTPError`` where it is over, or the URL cannot be parsed.
    public func resume(from url: String? = nil) async throws {
        var place: HTTPURL?
        if let url { place = try HTTPURL(downloading: url) }
        try await controller.resume(from: place)
    }

    /// Ends it and removes what has come of it. Returns when that is done. A file that is complete stays.
    public func cancel() async { await controller.cancel() }

    /// Changes its place among those that wait.
    public func setPriority(_ priority: DownloadPriority) async { await controller.setPriority(priority) }
}

/// What a download is known by, in other processes too.
public struct DownloadID: Hashable, Sendable, Codable, Comparable, CustomStringConvertible {
    /// The number.
    public let number: UInt64

    /// An identity by its number.
    public init(_ number: UInt64) { self.number = number }

    /// Orders by number: those that were added first come first.
    public static func < (left: DownloadID, right: DownloadID) -> Bool { left.number < right.number }

    /// The number.
    public var description: String { "\(number)" }
}

/// What a download is doing.
public enum DownloadState: Sendable {
    /// It has its place in a queue.
    case waiting
    /// It runs, or waits between two tries.
    case running
    /// All bytes are there and are compared with the checksums.
    case verifying
    /// It was paused, and stays so until it is resumed, in another process too.
    case paused
    /// The file is there.
    case finished(DownloadResult)
    /// It failed; resuming it tries again.
    case failed(HTTPError)
    /// It was cancelled; nothing of it is left.
    case cancelled

    /// Whether it is over, unless somebody resumes it.
    public var isOver: Bool {
        switch self {
        case .finished, .failed, .cancelled: true
        case .waiting, .running, .verifying, .paused: false
        }
    }
}

/// The states of a download: the present one first, then each newer one. Who is slow skips what it missed, and always gets
/// the last one. Cancelling the iterating task ends its iteration and touches nothing else.
public struct DownloadStates: AsyncSequence, Sendable {
    /// What iteration gives.
    public typealias Element = DownloadState
    /// Iteration does not fail.
    public typealias Failure = Never

    let source: NewestValue<DownloadStatus.Stamped>

    /// One pass over the states.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate var reader: ValueReader<DownloadStatus.Stamped>

        /// The newest state that this iterator has not given yet; `nil` after the last one, or when cancelled.
        public mutating func next() async -> DownloadState? { await reader.next()?.state }

        /// The newest state that this iterator has not given yet; `nil` after the last one, or when cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> DownloadState? {
            await reader.next()?.state
        }
    }

    /// A pass that begins with the present state.
    public func makeAsyncIterator() -> Iterator { Iterator(reader: ValueReader(source)) }
}

/// How urgent a download is among those that wait.
///
/// Those that wait long rise, so that none waits for ever.
public enum DownloadPriority: Int, Hashable, Sendable, Codable, Comparable, CaseIterable {
    /// Behind the others.
    case low = 0
    /// As most are.
    case normal = 1
    /// Before the others.
    case high = 2

    /// The less urgent one first.
    public static func < (left: DownloadPriority, right: DownloadPriority) -> Bool {
        left.rawValue < right.rawValue
    }
}
