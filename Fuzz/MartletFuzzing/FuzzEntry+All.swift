extension FuzzEntry {
    /// All entries in the order of fuzzing.
    package static let all: [FuzzEntry] = [
        responseHead, responseStream, chunkedBody, requestStream, requestWriting, fieldValues, url,
        contentCoding, serverSentEvents, multipartBoundary, harStrings, jsonValue, contentDisposition, digestField,
        setCookie, challenges, location, xml, metalink, imageInfo, cacheControl, vary, cacheDates,
        cacheEntry, cacheIndex, resumeRecord, frozenRequest, netlink, cassette,
        webSocket, session,
    ]
}
