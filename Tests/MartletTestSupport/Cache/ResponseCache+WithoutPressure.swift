package import MartletCaching
import MartletCore

extension ResponseCache.Options {
    /// The default options without memory pressure, so that stored responses are not evicted.
    package static var withoutPressure: ResponseCache.Options {
        var options = ResponseCache.Options()
        options.memoryPressure = nil
        return options
    }
}
