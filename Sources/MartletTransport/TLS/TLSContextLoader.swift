/// Makes the TLS context of a set of settings once, when the first secure connection is opened.
///
/// Reading a bundle of roots takes milliseconds and blocks, so it happens on a worker; dials that come meanwhile wait for
/// the same result. A failure is not kept: the file may be there next time.
actor TLSContextLoader {
    private let settings: TLSSettings
    private var loading: Task<Result<TLSContext, TLSError>, Never>?

    init(settings: TLSSettings) {
        self.settings = settings
    }

    /// The context.
    func context() async throws(TLSError) -> TLSContext {
        if let loading {
            let result = await loading.value
            return try result.get()
        }
        let settings = settings
        // Unstructured, since several dials wait for it and none of them owns it.
        let task = Task {
            await BlockingWorkers.shared.run { () -> Result<TLSContext, TLSError> in
                do throws(TLSError) {
                    return .success(try TLSContext(client: settings))
                } catch {
                    return .failure(error)
                }
            }
        }
        loading = task
        let result = await task.value
        if case .failure = result { loading = nil }
        return try result.get()
    }
}
