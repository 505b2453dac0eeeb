import HTTPTypes
import MartletFeatureSettings
import MartletCaching
import MartletCookies
import MartletCore
import Testing

@Suite("Request options")
struct RequestOptionsTests {
    @Test("Options are no larger than their timeouts and three words")
    func size() {
        // The timeouts and three bytes, in whole words; the body limit and seven bytes; a reference to the other
        // options.
        let timeouts = (MemoryLayout<Timeouts>.size + 8) / 8 * 8
        #expect(MemoryLayout<RequestOptions>.size <= timeouts + 3 * 8)
    }

    @Test("Changing a copy does not change the original, for each kind of option")
    func copies() {
        var options = RequestOptions()
        options.cachePartition = "a"
        options.usesCookies = false
        var copy = options
        copy.cachePartition = "b"
        copy.usesCookies = true
        copy.omittedFields = [.userAgent]
        #expect(
            options.cachePartition == "a" && options.usesCookies == false && options.omittedFields.isEmpty)
        #expect(copy.cachePartition == "b" && copy.usesCookies == true && copy.omittedFields == [.userAgent])
    }
}
