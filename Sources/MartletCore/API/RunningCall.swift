/// A running call of a session, as ``HTTPSession/tasks`` lists it: what it is, how far it has come, and its end.
///
/// It does not keep the call running. After the call has ended, its progress remains that of the end, and ``cancel()`` does nothing.
public struct RunningCall: Identifiable, Sendable {
    private let control: TransferControl
    private let givenKind: HTTPTask.Kind
    /// The call; `nil` for a task that has not begun.
    private let call: Call?
    let start: MonotonicTime

    /// The task, if the call was made by ``HTTPSession/task(for:body:options:)`` or ``HTTPSession/downloadTask(for:to:overwrites:options:)``.
    public let task: HTTPTask?
    /// The number of the call, as in ``SessionEvent/call``, ``CallContext/number`` and ``HTTPTask/id``.
    public let id: UInt64

    init(_ task: HTTPTask) {
        self.task = task
        control = task.control
        (givenKind, call, start, id) = (task.kind, nil, task.start, task.id)
    }

    init(_ control: TransferControl, _ call: Call, _ kind: HTTPTask.Kind) {
        task = nil
        self.control = control
        self.call = call
        givenKind = kind == .data && call.body.isPresent ? .upload : kind
        (start, id) = (call.start, control.callNumber)
    }

    /// The kind of transfer. A call without a task is an upload if its request has a body.
    public var kind: HTTPTask.Kind { task?.kind ?? givenKind }

    /// The request as it was made, before redirects.
    public var request: HTTPRequest {
        call?.publicRequest ?? task?.request
            ?? HTTPRequest(method: .get, scheme: nil, authority: nil, path: nil)
    }

    /// The URL of the request, without user info; `nil` for a task whose request has no valid URL.
    public var url: HTTPURL? { call?.url ?? (try? HTTPSession.url(of: request)) }

    /// The state of the call. One that is paused, or has ended, is known as such only if it has a ``task``.
    public var state: HTTPTask.State { control.presentState }

    /// The progress of the request's body.
    public var uploadProgress: TransferProgress { control.presentUpload(of: call?.body.length) }

    /// The progress of the response's body, in bytes before content codings are decoded. A short body may be received in one step.
    public var downloadProgress: TransferProgress { control.presentDownload }

    /// Ends the call: the code that awaits it receives `CancellationError`, and its connection is closed.
    public func cancel() { control.cancel() }
}
