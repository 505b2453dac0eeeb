import Martlet

extension Download {
    /// How far it has come by now.
    var newestProgress: DownloadProgress {
        get async {
            // A pass begins with the present value, for which nobody waits.
            var pass = progress.makeAsyncIterator()
            return await pass.next() ?? DownloadProgress()
        }
    }
}
