package import MartletCaching
import MartletCore

extension ResponseCache.Options {
    /// The defaults, whatever becomes of the machine's memory meanwhile: what was stored is still there.
    package static var withoutPressure: ResponseCache.Options {
        var options = ResponseCache.Options()
        options.memoryPressure = nil
        return options
    }
}
