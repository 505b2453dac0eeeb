import Martlet

extension UsageError {
    /// What a queue threw, as something to say and an exit code.
    init(ofQueue error: any Error) {
        guard let error = error as? HTTPError else {
            self.init("\(error)", status: error is CancellationError ? .interrupted : .readFailed)
            return
        }
        // Here a limit is that of the queue: there is no room.
        self.init(error.message, status: error.code == .limitExceeded ? .diskFull : ExitStatus(error))
    }
}
