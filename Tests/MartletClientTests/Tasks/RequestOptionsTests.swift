import HTTPTypes
import MartletCaching
import MartletCookies
import MartletCore
import Testing

@Suite("Request options")
struct RequestOptionsTests {
    @Test("Options take no more room in a frame than their timeouts and three words")
    func size() {
        // The timeouts and three bytes, in whole words; the body limit and seven bytes; a reference to all the rest.
        let timeouts = (MemoryLayout<Timeouts>.size + 8) / 8 * 8
        #expect(MemoryLayout<RequestOptions>.size <= timeouts + 3 * 8)
    }

    @Test("A copy is changed alone, whichever option it is")
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
