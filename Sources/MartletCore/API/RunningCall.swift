/// A running call of a session, listed by ``HTTPSession/tasks``. It has the call's progress, and can cancel the call.
///
/// This value does not keep the call running. After the end of the call, its progress is unchanged.
public struct RunningCall: Identifiable, Sendable {
    private enum Source: Sendable {
        case task(HTTPTask)
        case call(Call, HTTPTask.Kind)
    }

    private let control: TransferControl
    private let source: Source
    let start: MonotonicTime

    /// The task, if the call was made by ``HTTPSession/task(for:method:query:body:headers:timeout:options:validate:)``
    /// or ``HTTPSession/downloadTask(for:to:overwrites:query:headers:timeout:options:validate:)``.
    public var task: HTTPTask? { if case .task(let task) = source { task } else { nil } }
    /// The number of the call, as in ``HTTPExchange/callNumber``.
    public let id: UInt64

    init(_ task: HTTPTask) { (source, control, start, id) = (.task(task), task.control, task.start, task.id) }

    init(_ control: TransferControl, _ call: Call, _ kind: HTTPTask.Kind) {
        self.control = control
        source = .call(call, kind == .data && call.body.isPresent ? .upload : kind)
        (start, id) = (call.start, call.number)
    }

    /// The kind of transfer. A call without a task is an upload if its request has a body.
    public var kind: HTTPTask.Kind {
        switch source {
        case .task(let task): task.kind
        case .call(_, let kind): kind
        }
    }

    /// The request, before redirects.
    public var request: HTTPRequest {
        switch source {
        case .task(let task): task.request
        case .call(let call, _): call.publicRequest
        }
    }

    /// The URL of the request, without user info; `nil` for a task whose request has no valid URL.
    public var url: HTTPURL? {
        switch source {
        case .task(let task): try? HTTPSession.url(of: task.request)
        case .call(let call, _): call.url
        }
    }

    /// The state of the call. `.paused` and `.finished` are reported only if the call has a ``task``.
    public var state: HTTPTask.State { control.presentState }

    /// The progress of the request's body, in bytes as sent. The total of a compressed body is not known in advance.
    public var uploadProgress: TransferProgress {
        let length: UInt64? =
            if case .call(let call, _) = source, call.body.compression == nil { call.body.length } else { nil }
        return control.presentUpload(of: length)
    }

    /// The progress of the response's body, in bytes before content codings are decoded.
    public var downloadProgress: TransferProgress { control.presentDownload }

    /// Cancels the call: it throws `CancellationError`, and its connection is closed. No effect after its end.
    public func cancel() { control.cancel() }
}
