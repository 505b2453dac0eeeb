import MartletTransport

/// Turns the failures of calls into a service's own errors.
///
/// It is set for a session (``SessionConfiguration/errorMapper``) or a host (``HTTPHost/errorMapper``). An error about the
/// answer, such as one of the code `.unacceptableStatus`, carries the exchange in ``HTTPError/exchange``: its head, and its
/// body as far as it was collected.
public protocol HTTPErrorMapping: Sendable {
    /// What is thrown in place of an error; the error itself where there is nothing better to say.
    ///
    /// It runs after all retries, once for each call that fails. `CancellationError` does not come here, nor do errors of the
    /// caller's own, which interceptors, encoders, decoders and closures throw.
    ///
    /// It runs in a task of its own, and may make calls. When the call is cancelled, or one second after its total clock ran
    /// out, the task is cancelled, and the call ends with the error as it was.
    func error(for error: HTTPError) async -> any Error
}

extension SessionSettings {
    /// What is thrown in place of an error.
    /// - Parameter userCode: That of the call that failed; `nil` where there was none.
    func mapped(_ error: any Error, _ userCode: @autoclosure () -> UserCode? = nil) async -> any Error {
        guard let mapper = configuration.errorMapper, let error = error as? HTTPError else { return error }
        let mapped =
            if let userCode = userCode() {
                await userCode.tell { await mapper.error(for: error) }
            } else {
                try? await waitUnlessCancelled { await mapper.error(for: error) }
            }
        return mapped ?? error
    }
}
