public import MartletCore

/// The identifier of an upload, unique in the directory of its manager and stable across processes.
public struct UploadID: Hashable, Sendable, Comparable, CustomStringConvertible {
    /// The number of the upload, from 1.
    public let number: UInt64

    /// Creates an identifier from its number.
    public init(_ number: UInt64) { self.number = number }

    /// Orders by number: uploads that were added first come first.
    public static func < (left: UploadID, right: UploadID) -> Bool { left.number < right.number }

    /// The number as text.
    public var description: String { "\(number)" }
}

/// The state of an upload. Two failures are equal if the codes of their errors are equal.
public enum UploadState: Equatable, Sendable {
    /// The upload is queued.
    case waiting
    /// The upload runs, or waits for a retry.
    case running
    /// The upload is paused until it is resumed, also in later processes.
    case paused
    /// The server accepted the whole file.
    case finished(UploadResult)
    /// The upload failed. It can be resumed.
    case failed(HTTPError)
    /// The upload was cancelled, and removed from the queue.
    case cancelled

    /// Whether the upload is finished, failed or cancelled.
    public var hasEnded: Bool {
        switch self {
        case .finished, .failed, .cancelled: true
        case .waiting, .running, .paused: false
        }
    }

    /// Whether both are the same state, with the same result or the same `HTTPError.code`.
    public static func == (left: UploadState, right: UploadState) -> Bool {
        switch (left, right) {
        case (.finished(let left), .finished(let right)): left == right
        case (.failed(let left), .failed(let right)): left.code == right.code
        case (.waiting, .waiting), (.running, .running), (.paused, .paused), (.cancelled, .cancelled): true
        default: false
        }
    }
}

/// The progress of an upload, or of all uploads of a manager together: a state, not an event.
public struct UploadProgress: Hashable, Sendable {
    /// The number of bytes given to the connection, including acknowledged ones. After a failure it falls back to
    /// ``acknowledgedByteCount``.
    public var completedByteCount: UInt64 = 0
    /// The number of bytes that the server has acknowledged. They are not sent again.
    public var acknowledgedByteCount: UInt64 = 0
    /// The length of the file in bytes.
    public var totalByteCount: UInt64 = 0
    /// The number of bytes of the file that this process has sent, including repeated ones.
    public var sentByteCount: UInt64 = 0

    /// Creates the progress of an upload without bytes.
    public init() {}

    /// The completed fraction, 0 to 1. An empty file is complete from the start.
    public var fractionCompleted: Double {
        totalByteCount == 0 ? 1 : min(1, Double(completedByteCount) / Double(totalByteCount))
    }

    /// The sum of the progress of several uploads.
    static func total(of parts: some Sequence<UploadProgress>) -> UploadProgress {
        parts.reduce(into: UploadProgress()) { sum, part in
            sum.completedByteCount = sum.completedByteCount.clampedSum(part.completedByteCount)
            sum.acknowledgedByteCount = sum.acknowledgedByteCount.clampedSum(part.acknowledgedByteCount)
            sum.totalByteCount = sum.totalByteCount.clampedSum(part.totalByteCount)
            sum.sentByteCount = sum.sentByteCount.clampedSum(part.sentByteCount)
        }
    }
}

/// The result of a finished upload.
public struct UploadResult: Hashable, Sendable {
    /// The status of the final response, 200–299.
    public var statusCode: Int
    /// The header fields of the final response.
    public var headers: HTTPFields
    /// The body of the final response, of which at most 64 KiB are kept.
    public var body: [UInt8]
    /// The length of the file in bytes.
    public var byteCount: UInt64
    /// The URL at which the server stored the progress, which is secret; `nil` for a plain upload. For tus it is the
    /// URL of the file.
    public var uploadURL: HTTPURL?
    /// Whether the response to the last bytes was lost. The server then confirmed, in the response that is described
    /// here, that it has the whole file.
    public var isResponseLost: Bool

    /// Creates a result from its parts.
    public init(
        statusCode: Int, headers: HTTPFields = HTTPFields(), body: [UInt8] = [], byteCount: UInt64,
        uploadURL: HTTPURL? = nil, isResponseLost: Bool = false
    ) {
        (self.statusCode, self.headers, self.body, self.byteCount) = (statusCode, headers, body, byteCount)
        (self.uploadURL, self.isResponseLost) = (uploadURL, isResponseLost)
    }
}

/// A handle of an upload of an ``UploadManager``, which it keeps alive. Releasing the handle has no effect.
public struct Upload: Sendable, Identifiable {
    /// The identifier.
    public let id: UploadID
    /// The absolute path of the file.
    public let file: FilePath
    /// The URL that the file is sent to, without user info.
    public let url: HTTPURL
    let status: UploadStatus
    let manager: UploadManager

    /// The current state.
    public var state: UploadState { status.states.value }

    /// The states: the current one first, then newer ones. A slow consumer skips states. The sequence ends when the
    /// state can no longer change, or the manager is closed.
    public var states: LatestValues<UploadState> { LatestValues(status.states) { $0 } }

    /// The progress: the current value first, then newer ones. A slow consumer skips values.
    public var progress: LatestValues<UploadProgress> { LatestValues(status.progress) { $0 } }

    /// The result. Waits until the server has accepted the file, also while the upload is paused.
    /// - Throws: The `HTTPError` of a failed upload; `CancellationError` if the upload or the waiting task was
    ///   cancelled, or the manager was closed.
    public var value: UploadResult {
        get async throws {
            for await state in states {
                switch state {
                case .finished(let result): return result
                case .failed(let error): throw error
                case .cancelled: throw CancellationError()
                case .waiting, .running, .paused: continue
                }
            }
            throw CancellationError()
        }
    }

    /// Stops the upload. See ``UploadManager/pause(_:)``.
    public func pause() async { await manager.pause(id) }

    /// Resumes the upload after a pause or a failure. See ``UploadManager/resume(_:)``.
    public func resume() async throws { try await manager.resume(id) }

    /// Cancels the upload. See ``UploadManager/cancel(_:)``.
    public func cancel() async { await manager.cancel(id) }
}

/// The state and the progress of an upload, for observers.
final class UploadStatus: Sendable {
    let states: CurrentValue<UploadState>
    let progress: CurrentValue<UploadProgress>
    /// Receives each new progress, for the total of a manager.
    private let onProgress: @Sendable (UploadProgress) -> Void

    init(
        _ state: UploadState, _ progress: UploadProgress,
        onProgress: @escaping @Sendable (UploadProgress) -> Void = { _ in }
    ) {
        (states, self.progress, self.onProgress) = (CurrentValue(state), CurrentValue(progress), onProgress)
        onProgress(progress)
    }

    func become(_ state: UploadState) { states.update { state } }

    func change(_ body: (inout UploadProgress) -> Void) {
        progress.change(body)
        onProgress(progress.value)
    }

    /// Ends the sequences: the upload can no longer change.
    func end() {
        progress.finish()
        states.finish()
    }
}

extension UInt64 {
    /// The sum with another number, or the maximum.
    func clampedSum(_ other: UInt64) -> UInt64 {
        let (sum, overflows) = addingReportingOverflow(other)
        return overflows ? .max : sum
    }
}

extension UploadProgress {
    /// The progress of an upload before its next run.
    init(_ item: UploadItem) {
        self.init()
        totalByteCount = item.file.byteCount
        acknowledgedByteCount = item.checkpoint.offset
        if case .finished = item.stage { acknowledgedByteCount = item.file.byteCount }
        completedByteCount = acknowledgedByteCount
    }
}
