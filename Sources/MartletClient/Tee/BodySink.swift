/// One of the places that a body is sent to by ``ResponseBody/tee(to:onFailure:)``.
///
/// Its functions are called one after the other, by one task at a time. ``write(_:)`` holds the sender: while it does not
/// return, nothing more of the body is read. Behind ``finish()`` or ``abandon()`` nothing follows.
public protocol BodySink: Sendable {
    /// Takes the next piece, which is not empty.
    ///
    /// What it throws ends this sink: ``abandon()`` follows. When the call is cancelled its task is, and it should return or
    /// throw soon.
    func write(_ piece: [UInt8]) async throws

    /// The body is complete.
    func finish() async throws

    /// The body is not complete, and will not be: it failed, was cancelled, or this sink threw.
    func abandon() async
}

extension BodySink {
    /// Nothing.
    public func finish() async throws {}

    /// Nothing.
    public func abandon() async {}
}
