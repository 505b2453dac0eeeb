public import HTTPTypes
import Synchronization

/// The uploads of a test origin, in memory: see ``OriginHandler/resumableUploads(_:)``.
///
/// ```swift
/// let store = ResumableUploadStore()
/// store.inject(.cut(afterBytes: 1000), into: .patch)
/// try await TestOrigin.withOrigin(.plain, handler: .resumableUploads(store)) { origin in
///     try await session.uploadResumably("/data/movie.mp4", to: origin.url("/files"))
/// }
/// #expect(store.completed.map(\.bytes) == [movie])
/// ```
public final class ResumableUploadStore: Sendable {
    /// The protocol of an upload.
    public enum Kind: String, Sendable, Hashable, CaseIterable {
        /// draft-ietf-httpbis-resumable-upload-11, interop version 8.
        case ietf
        /// tus 1.0.0 with the extensions creation and termination.
        case tus
        /// A request that cannot be resumed.
        case plain
    }

    /// A file that is being received, or was received.
    public struct Upload: Sendable, Hashable {
        /// The protocol.
        public let kind: Kind
        /// The method of the request that created the upload.
        public let method: HTTPRequest.Method
        /// The path of that request.
        public let path: String
        /// The header fields of that request.
        public let headers: OriginFields
        /// The received bytes.
        public internal(set) var bytes: [UInt8] = []
        /// The length that the client declared; `nil` while it is unknown.
        public internal(set) var length: UInt64?
        /// Whether the client has completed the upload.
        public internal(set) var isComplete = false
        /// The number of the latest request. It ends the earlier ones.
        var turn = 0
    }

    /// The limits of a store, in bytes. Limits other than ``maximumSize`` are announced only to clients of
    /// ``Kind/ietf``.
    public struct Limits: Sendable, Hashable {
        /// The maximum size of a file; 256 MiB by default.
        public var maximumSize = 256 << 20
        /// The maximum size of the content of a request; `nil` for no limit.
        public var maximumAppend: Int?
        /// The minimum size of the content of a request that does not complete the upload and has content.
        public var minimumAppend: Int?

        /// Creates the default limits.
        public init() {}
    }

    /// An intentional fault of one request.
    public enum Fault: Sendable {
        /// The connection is cut after that many bytes of the request's content were stored.
        case cut(afterBytes: Int)
        /// After that many bytes of the content were stored, the request waits until the origin stops.
        case hold(afterBytes: Int)
        /// The request is processed, and the connection is cut instead of a response.
        case loseResponse
        /// A response with this status and these fields, and without any other effect.
        case status(Int, OriginFields = [:])
        /// All unfinished uploads are forgotten before the request is processed.
        case forget
        /// The response claims this offset.
        case claimOffset(UInt64)
    }

    private struct State {
        var uploads: [Int: Upload] = [:]
        var faults: [(method: HTTPRequest.Method?, fault: Fault)] = []
        var requests: [HTTPRequest.Method] = []
        var lastNumber = 0
        var receivedByteCount = 0
        var holdingCount = 0
        var heldCount = 0
    }

    /// The protocols that the store supports.
    let kinds: Set<Kind>
    let limits: Limits
    /// Whether interim responses with the status 104 are sent.
    let sendsInterimResponses: Bool
    private let state = Mutex(State())

    /// Creates an empty store.
    /// - Parameters:
    ///   - kinds: The protocols to support; a request of another one is a plain request. All by default.
    ///   - limits: The limits.
    ///   - sendsInterimResponses: Whether creations of ``Kind/ietf`` are announced with the status 104.
    public init(
        supporting kinds: Set<Kind> = Set(Kind.allCases), limits: Limits = Limits(), sendsInterimResponses: Bool = true
    ) { (self.kinds, self.limits, self.sendsInterimResponses) = (kinds, limits, sendsInterimResponses) }

    // MARK: Inspection

    /// The uploads in the order of their creation.
    public var uploads: [Upload] { state.withLock { state in state.uploads.sorted { $0.key < $1.key }.map(\.value) } }
    /// The complete uploads in the order of their creation.
    public var completed: [Upload] { uploads.filter(\.isComplete) }
    /// The methods of all requests so far, in order.
    public var requests: [HTTPRequest.Method] { state.withLock { $0.requests } }
    /// The number of bytes of content that all requests had.
    public var receivedByteCount: Int { state.withLock { $0.receivedByteCount } }
    /// The number of requests that wait because of ``Fault/hold(afterBytes:)``.
    public var holdingCount: Int { state.withLock { $0.holdingCount } }
    /// The number of requests that were held so far, also those whose clients have gone since.
    package var heldCount: Int { state.withLock { $0.heldCount } }

    /// Adds a fault for the next request with a method, after the faults that were added before.
    /// - Parameters:
    ///   - fault: The fault.
    ///   - method: The method; `nil` for any.
    public func inject(_ fault: Fault, into method: HTTPRequest.Method? = nil) {
        state.withLock { $0.faults.append((method, fault)) }
    }

    // MARK: Requests

    /// Records a request, and returns its fault.
    func begin(_ method: HTTPRequest.Method) -> Fault? {
        state.withLock { state in
            state.requests.append(method)
            let index = state.faults.firstIndex { $0.method == nil || $0.method == method }
            let fault = index.map { state.faults.remove(at: $0).fault }
            if case .forget = fault { state.uploads = state.uploads.filter(\.value.isComplete) }
            return fault
        }
    }

    func create(_ upload: Upload) -> Int {
        state.withLock { state in
            state.lastNumber += 1
            state.uploads[state.lastNumber] = upload
            return state.lastNumber
        }
    }

    /// Begins a request to an upload, and ends the earlier ones; `nil` if the upload is unknown.
    func take(_ number: Int) -> Upload? {
        state.withLock { state in
            state.uploads[number]?.turn += 1
            return state.uploads[number]
        }
    }

    /// Appends content for the request that began with a turn.
    /// - Returns: The upload; `nil` if another request began, or the upload was removed.
    func append(_ piece: some Collection<UInt8>, to number: Int, turn: Int) -> Upload? {
        state.withLock { state in
            state.receivedByteCount += piece.count
            guard state.uploads[number]?.turn == turn else { return nil }
            state.uploads[number]?.bytes += piece
            return state.uploads[number]
        }
    }

    func change(_ number: Int, _ body: (inout Upload) -> Void) {
        state.withLock { state in
            guard var upload = state.uploads[number] else { return }
            body(&upload)
            state.uploads[number] = upload
        }
    }

    /// The number of received bytes of an upload; 0 if it is unknown.
    func byteCount(of number: Int) -> Int { state.withLock { $0.uploads[number]?.bytes.count ?? 0 } }

    func remove(_ number: Int) { state.withLock { $0.uploads[number] = nil } }

    func beginHolding() {
        state.withLock { state in
            state.holdingCount += 1
            state.heldCount += 1
        }
    }

    func endHolding() { state.withLock { $0.holdingCount -= 1 } }
}
